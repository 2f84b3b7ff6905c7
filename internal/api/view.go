package api

import (
	"cmp"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxChanges is how many changes one cluster shows.
const maxChanges = 50

// Fleet holds the last cycle on every RayCluster.
type Fleet interface {
	// Views returns one View per cluster, in any order. Callers must not change them.
	Views() []View
	// View returns the view of one cluster; false if there is no such cluster.
	View(key nodepool.ClusterKey) (View, bool)
}

// View is the last decision about one RayCluster. It must not change once it is published.
type View struct {
	*addon.Decision
	// Shard decides about the RayCluster; empty if one process decides about all.
	Shard string
}

// fault is why the last cycle failed; empty if it succeeded.
func (v View) fault() string { return cmp.Or(v.Err, v.Unwritten, v.RayErr) }

// Summary returns the cluster as lists show it.
func (v View) Summary(now time.Time) apiv1.ClusterSummary {
	s := apiv1.ClusterSummary{
		Namespace: v.Cluster.Namespace, Name: v.Cluster.Name, Mode: v.Mode, ModeReason: v.Why.Message,
		Frozen: v.Kube.Freeze, Shard: v.Shard,
		LastCycle: apiv1.Time(v.At), DataAgeSeconds: age(v.ReadAt(), now), Error: v.fault(),
		Waiting: waiting(v.Snapshot.Demand), Unmet: len(apiv1.UnmetOf(v.Plan)),
	}
	if v.OptIn != nil && v.OptIn.Waiting != "" {
		s.WaitingInShadow = v.OptIn.Waiting + "; " + v.OptIn.Allow
	}
	for _, group := range v.Plan.Groups {
		s.Workers.Current += group.Current
		s.Workers.Desired += group.Desired
	}
	for _, node := range v.Snapshot.Nodes {
		if joined(node) {
			s.Workers.Ready++
		}
	}
	for _, finding := range v.Findings {
		if finding.Severity != raydemand.Info {
			s.Findings++
		}
	}
	return s
}

// Status returns the whole cluster.
func (v View) Status(now time.Time) apiv1.Cluster {
	return apiv1.Cluster{
		CapacityPolicy: v.capacityPolicy(),
		Namespace:      v.Cluster.Namespace,
		Name:           v.Cluster.Name,
		Mode:           v.Mode,
		ModeReason:     v.Why.Message,
		Frozen:         v.Kube.Freeze,
		Shard:          v.Shard,
		OptIn:          v.OptIn,
		Paused:         v.Paused,
		LastCycle:      apiv1.Time(v.At),
		CycleSeconds:   v.Took.Seconds(),
		DataAgeSeconds: age(v.ReadAt(), now),
		Error:          v.fault(),
		Groups:         v.groups(),
		ScaledBy:       v.Kube.ScaledBy,
		Departures:     v.departures(),
		Arrivals:       v.arrivals(),
		Demand: apiv1.Demand{
			Requests:         apiv1.List(v.Snapshot.Requests),
			Gangs:            apiv1.List(v.Snapshot.Gangs),
			RequestResources: apiv1.List(v.Snapshot.Constraint),
		},
		Requested: apiv1.List(v.Kube.RequestResources),
		Summary:   apiv1.List(v.Plan.Summary),
		Unmet:     apiv1.UnmetOf(v.Plan),
		Findings:  apiv1.List(v.Findings),
		Decisions: v.changes(),
	}
}

// capacityPolicy returns the capacity policy and what becomes of it; nil if there is none.
func (v View) capacityPolicy() *apiv1.CapacityPolicyState {
	written := v.Kube.Policy
	if written == nil {
		return nil
	}
	return &apiv1.CapacityPolicyState{Source: written.Source, Policy: written.Policy, Fault: written.Fault,
		Warm: apiv1.List(v.Plan.Warm), WarmNodes: v.WarmNodes, Idle: v.Idle, NotScaled: v.Unscaled()}
}

func (v View) groups() []apiv1.Group {
	groups := make([]apiv1.Group, 0, len(v.Plan.Groups))
	for _, planned := range v.Plan.Groups {
		group := apiv1.Group{
			Name: planned.Name, Current: planned.Current, Desired: planned.Desired, Min: planned.Min, Max: planned.Max,
			Resources: planned.Resources, Reasons: v.reasons(planned.Reasons), Closed: v.closed(planned.Name),
		}
		if written, known := v.Kube.Group(planned.Name); known {
			group.Asked = written.Goal() * written.NumOfHosts
		}
		n := v.NumGPUs[planned.Name]
		group.NumGpus = apiv1.NumGPUs{Declared: n.Declared, Derived: n.Derived, Reported: n.Reported, Ray: n.Ray,
			Sources: n.Sources, Mismatch: n.Mismatch}
		group.NumGpus.Sync.Mode = cmp.Or(string(n.Mode), string(nodepool.SyncReport))
		group.NumGpus.Sync.Code, group.NumGpus.Sync.Why = n.Code, n.Why
		if group.Resources == nil {
			group.Resources = apiv1.Bundle{}
		}
		group.Ready, group.Idle, group.Starting, group.Leaving = v.count(planned.Name)
		groups = append(groups, group)
	}
	return groups
}

// reasons returns why a group has its planned size, in the conditional if Heliostat does not scale the RayCluster.
func (v View) reasons(planned []planner.Reason) []planner.Reason {
	shown := append([]planner.Reason{}, planned...)
	if v.Unscaled() != "" {
		for i := range shown {
			shown[i] = shown[i].Conditional()
		}
	}
	return shown
}

func (v View) closed(group string) string {
	for _, g := range v.Snapshot.Groups {
		if g.Name == group {
			return g.Closed
		}
	}
	return ""
}

func (v View) count(group string) (ready, idle, starting, leaving int) {
	for _, node := range v.Snapshot.Nodes {
		switch {
		case node.Group != group:
		case joined(node):
			ready++
			if node.State == planner.Idle {
				idle++
			}
		case node.State == planner.Pending:
			starting++
		case node.State == planner.Leaving:
			leaving++
		}
	}
	return ready, idle, starting, leaving
}

func joined(node planner.Node) bool {
	return node.State == planner.Running || node.State == planner.Idle
}

// changes returns the last changes, newest first.
func (v View) changes() []apiv1.Decision {
	changes := []apiv1.Decision{}
	for _, a := range slices.Backward(v.Recent[max(0, len(v.Recent)-maxChanges):]) {
		changes = append(changes, ChangeOf(a))
	}
	return changes
}

// ChangeOf returns an action as the API shows it.
func ChangeOf(a addon.Action) apiv1.Decision {
	return apiv1.Decision{
		At: a.At, Action: a.Name(), Group: a.Group, From: a.From, To: a.To, Pods: append([]string{}, a.Pods...),
		Reason: planner.Reason{Code: a.Kind + "-" + a.Result, Message: a.Message},
	}
}

// waiting counts pending tasks and actors, and the bundles of pending gangs. It leaves out request_resources.
func waiting(demand raydemand.Demand) int64 {
	var n int64
	for _, request := range demand.Requests {
		n += request.Count
	}
	for _, gang := range demand.Gangs {
		n += int64(len(gang.Bundles))
	}
	return n
}

// age returns the age of data in seconds, at least 0; nil, which is null in JSON, if there is none.
func age(read, now time.Time) *float64 {
	if read.IsZero() {
		return nil
	}
	seconds := max(0, now.Sub(read).Seconds())
	return &seconds
}

// Unscaled returns why the plan is not applied; empty if it is.
func (v *View) Unscaled() string {
	switch {
	case v.Kube.Freeze:
		return "this is only a plan: the RayCluster is frozen, and nothing is written"
	case v.Mode == nodepool.Shadow || v.Mode == nodepool.Off:
		return "this is only a plan: " + v.Why.Message
	case v.Unwritten != "":
		return "writing the last plan failed and is retried: " + v.Unwritten
	}
	return ""
}
