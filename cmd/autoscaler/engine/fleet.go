package engine

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Fleet provides the loop's decisions to the REST server.
type Fleet struct {
	Loop *controller.Controller
	// Shard names this process; empty if it decides about all RayClusters.
	Shard string
}

// Views returns every cluster's last decision.
func (f Fleet) Views() []api.View {
	var views []api.View
	for _, d := range f.Loop.Decisions() {
		views = append(views, f.viewOf(d))
	}
	return views
}

// View returns the last decision of one cluster.
func (f Fleet) View(key nodepool.ClusterKey) (api.View, bool) {
	d, known := f.Loop.Decision(key)
	if !known {
		return api.View{}, false
	}
	return f.viewOf(d), true
}

// viewOf adds the shard that this process is to a decision.
func (f Fleet) viewOf(d *addon.Decision) api.View {
	v := viewOf(d)
	v.Shard = f.Shard
	return v
}

func viewOf(d *addon.Decision) api.View {
	v := api.View{
		Key:        d.Cluster,
		Mode:       d.Mode,
		ModeReason: d.Why.Message,
		Frozen:     d.Kube.Freeze,
		Paused:     d.Paused,
		CycleAt:    d.At,
		CycleTook:  d.Took,
		StateAt:    d.ReadAt(),
		Unwritten:  d.Unwritten,
		Error:      cmp.Or(d.Err, d.Unwritten, d.RayErr),
		Snapshot:   d.Snapshot,
		Plan:       d.Plan,
		Requested:  d.Kube.RequestResources,
		Owned:      d.Kube.Owned,
		Policy:     d.Kube.Policy,
		Idle:       d.Idle,
		GiveBack:   d.Kube.GiveBack,
		WarmNodes:  d.WarmNodes,
		OptIn:      d.OptIn,
		Findings:   d.Findings,
	}
	if d.Jobs != nil {
		v.Drivers = d.Jobs.Jobs
	}
	v.NumGPUs = make(map[string]apiv1.NumGPUs, len(d.NumGPUs))
	for group, n := range d.NumGPUs {
		shown := apiv1.NumGPUs{Declared: n.Declared, Derived: n.Derived, Reported: n.Reported, Ray: n.Ray,
			Sources: n.Sources, Mismatch: n.Mismatch}
		shown.Sync.Mode, shown.Sync.Code, shown.Sync.Why = string(n.Mode), n.Code, n.Why
		v.NumGPUs[group] = shown
	}
	for _, a := range slices.Backward(d.Recent) {
		v.Changes = append(v.Changes, changeOf(a))
	}
	return v
}

// changeOf returns an action as the API shows it.
func changeOf(a addon.Action) apiv1.Decision {
	return apiv1.Decision{
		At: a.At, Action: a.Name(), Group: a.Group, From: a.From, To: a.To, Pods: append([]string{}, a.Pods...),
		Reason: planner.Reason{Code: a.Kind + "-" + a.Result, Message: a.Message},
	}
}
