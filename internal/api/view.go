package api

import (
	"cmp"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/jobs"
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

// View is the last cycle on one RayCluster. It must not change once it is published.
type View struct {
	Key nodepool.ClusterKey
	// Mode is the current mode, ModeReason why it applies.
	Mode       nodepool.Mode
	ModeReason string
	Frozen     bool
	// Shard decides about the RayCluster; empty if one process decides about all.
	Shard string
	// OptIn is what Heliostat would do with a RayCluster that it does not scale; nil if it scales it.
	OptIn *apiv1.OptIn
	// Paused is why Heliostat does not scale down now; empty if it may.
	Paused string
	// CycleAt is the time of the last decision, zero before the first; CycleTook is the duration of the cycle.
	CycleAt   time.Time
	CycleTook time.Duration
	// StateAt is the time of the last state from Ray; zero if there is none.
	StateAt time.Time
	// Error is why the last cycle failed; empty if it succeeded.
	Error string
	// Unwritten is why the last plan was not applied, or not all of it; empty if it was.
	Unwritten string
	// Snapshot is the input of the last decision, Plan the decision.
	Snapshot planner.Snapshot
	Plan     planner.Plan
	// Requested is the request in the annotation, known even before the first decision.
	Requested []raydemand.Request
	// Owned are the requests with owners and their status, as the decision saw them. Callers must not change them.
	Owned    []nodepool.OwnedRequest
	Findings []raydemand.Finding
	// Policy is the capacity policy that counts; nil if there is none. Idle is what happens to the RayCluster without
	// work, or what prevents it; empty if nothing is to happen.
	Policy *capacity.Written
	Idle   string
	// GiveBack is what the RayCluster gives back; nil if nothing.
	GiveBack *giveback.Reservation
	// WarmNodes is what becomes of the nodes that the policy wants.
	WarmNodes []capacity.NodesPlan
	// Drivers are the Ray jobs whose drivers are connected; nil if jobs are not read.
	Drivers []jobs.Job
	// Changes are the last changes, newest first. The API shows the first 50.
	Changes []apiv1.Decision
	// NumGPUs is the number of GPUs of a worker, by group. A missing group has no number.
	NumGPUs map[string]apiv1.NumGPUs
}

// Summary returns the cluster as lists show it.
func (v View) Summary(now time.Time) apiv1.ClusterSummary {
	s := apiv1.ClusterSummary{
		Namespace: v.Key.Namespace, Name: v.Key.Name, Mode: v.Mode, ModeReason: v.ModeReason, Frozen: v.Frozen,
		Shard:     v.Shard,
		LastCycle: apiv1.Time(v.CycleAt), DataAgeSeconds: age(v.StateAt, now), Error: v.Error,
		Waiting: waiting(v.Snapshot.Demand), Unmet: len(v.unmet()),
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

// Cluster returns the whole cluster.
func (v View) Cluster(now time.Time) apiv1.Cluster {
	var policy *apiv1.CapacityPolicyState
	if v.Policy != nil {
		state := v.CapacityPolicy()
		policy = &state
	}
	return apiv1.Cluster{
		CapacityPolicy: policy,
		Namespace:      v.Key.Namespace,
		Name:           v.Key.Name,
		Mode:           v.Mode,
		ModeReason:     v.ModeReason,
		Frozen:         v.Frozen,
		Shard:          v.Shard,
		OptIn:          v.OptIn,
		Paused:         v.Paused,
		LastCycle:      apiv1.Time(v.CycleAt),
		CycleSeconds:   v.CycleTook.Seconds(),
		DataAgeSeconds: age(v.StateAt, now),
		Error:          v.Error,
		Groups:         v.groups(),
		Departures:     v.departures(),
		Arrivals:       v.arrivals(),
		Guards:         v.guards(),
		Demand: apiv1.Demand{
			Requests:         apiv1.List(v.Snapshot.Requests),
			Gangs:            apiv1.List(v.Snapshot.Gangs),
			RequestResources: apiv1.List(v.Snapshot.Constraint),
		},
		Requested: apiv1.List(v.Requested),
		Summary:   apiv1.List(v.Plan.Summary),
		Unmet:     v.unmet(),
		Findings:  apiv1.List(v.Findings),
		Decisions: v.changes(),
	}
}

// CapacityPolicy returns the capacity policy and what becomes of it.
func (v View) CapacityPolicy() apiv1.CapacityPolicyState {
	state := apiv1.CapacityPolicyState{Warm: apiv1.List(v.Plan.Warm), Idle: v.Idle, NotScaled: v.Unscaled()}
	if v.Policy != nil {
		state.Source, state.Policy, state.Fault = v.Policy.Source, v.Policy.Policy, v.Policy.Fault
	}
	state.WarmNodes = v.WarmNodes
	return state
}

func (v View) groups() []apiv1.Group {
	groups := make([]apiv1.Group, 0, len(v.Plan.Groups))
	for _, planned := range v.Plan.Groups {
		group := apiv1.Group{
			Name: planned.Name, Current: planned.Current, Desired: planned.Desired, Min: planned.Min, Max: planned.Max,
			Resources: planned.Resources, Reasons: v.reasons(planned.Reasons), Closed: v.closed(planned.Name),
			NumGpus: v.NumGPUs[planned.Name],
		}
		group.NumGpus.Sync.Mode = cmp.Or(group.NumGpus.Sync.Mode, string(nodepool.SyncReport))
		if group.Resources == nil {
			group.Resources = apiv1.Bundle{}
		}
		group.Ready, group.Idle, group.Starting, group.Leaving = v.count(planned.Name)
		group.Guarded = v.guarded(planned.Name)
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

func (v View) unmet() []apiv1.Unmet {
	unmet := []apiv1.Unmet{}
	for _, r := range v.Plan.InfeasibleRequests {
		unmet = append(unmet, unmetRequest(apiv1.UnmetKindRequest, r))
	}
	for _, g := range v.Plan.InfeasibleGangRequests {
		unmet = append(unmet, apiv1.Unmet{Kind: apiv1.UnmetKindGang, Count: 1, Gang: &g.Gang, Reason: g.Reason})
	}
	for _, r := range v.Plan.InfeasibleRequestResources {
		unmet = append(unmet, unmetRequest(apiv1.UnmetKindRequestResources, r))
	}
	return unmet
}

func unmetRequest(kind apiv1.UnmetKind, r planner.UnmetRequest) apiv1.Unmet {
	return apiv1.Unmet{
		Kind:           kind,
		AskedBy:        r.AskedBy,
		Count:          r.Count,
		Moving:         r.Moving,
		Resources:      r.Bundle,
		LabelSelectors: r.Selectors,
		Slice:          r.Slice,
		Reason:         r.Reason,
	}
}

func (v View) changes() []apiv1.Decision {
	changes := slices.Clone(v.Changes[:min(len(v.Changes), maxChanges)])
	for i := range changes {
		changes[i].Pods = apiv1.List(changes[i].Pods)
	}
	return apiv1.List(changes)
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

// byKey compares views by namespace and name.
func byKey(a, b View) int { return a.Key.Compare(b.Key) }

// Unscaled returns why the plan is not applied; empty if it is.
func (v *View) Unscaled() string {
	switch {
	case v.Frozen:
		return "this is only a plan: the RayCluster is frozen, and nothing is written"
	case v.Mode == nodepool.Shadow || v.Mode == nodepool.Off:
		return "this is only a plan: " + v.ModeReason
	case v.Unwritten != "":
		return "writing the last plan failed and is retried: " + v.Unwritten
	}
	return ""
}
