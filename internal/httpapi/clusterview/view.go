// Package clusterview holds the last cycle on each RayCluster, and shows it as the REST API does. It must not serve calls,
// know callers, or change what it shows.
package clusterview

import (
	"cmp"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxChanges bounds the decisions that one cluster shows.
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
	// Mode is the mode in force, ModeReason why it is.
	Mode       nodepool.Mode
	ModeReason string
	Frozen     bool
	// OptIn is what Heliostat would do with a RayCluster that it does not scale; nil for one that it scales.
	OptIn *apiv1.OptIn
	// Paused says why nothing is taken away at present; empty when it may be.
	Paused string
	// CycleAt is when the last decision was made, zero before the first; CycleTook is how long the cycle took.
	CycleAt   time.Time
	CycleTook time.Duration
	// StateAt is when Ray last gave its own account, zero when it never did.
	StateAt time.Time
	// Error says why the last cycle failed; empty when it did not.
	Error string
	// Unwritten says why the last plan could not be written, or not all of it; empty when it could.
	Unwritten string
	// Snapshot is what the decision was made from, Plan the decision.
	Snapshot planner.Snapshot
	Plan     planner.Plan
	// Requested is what the annotation keeps, known even before the first decision.
	Requested []raydemand.Request
	// Owned are the requests of owners with what they were told, as the decision saw them. Nobody changes it.
	Owned    []nodepool.OwnedRequest
	Findings []raydemand.Finding
	// Changes are the last changes, newest first. Only the first 50 are shown.
	Changes []apiv1.Decision
	// NumGPUs is how many GPUs a worker has, by group; a group that is not in it is shown without a number.
	NumGPUs map[string]NumGPUs
}

// NumGPUs is how many GPUs a worker of one group has, when the number may be written, and why it is not (code and sentence).
type NumGPUs struct {
	nodepool.NumGPUs
	Mode      nodepool.SyncMode
	Code, Why string
}

func (g NumGPUs) shown() apiv1.NumGPUs {
	shown := apiv1.NumGPUs{
		Declared: g.Declared, Derived: g.Derived, Reported: g.Reported, Ray: g.Ray, Sources: g.Sources, Mismatch: g.Mismatch,
	}
	shown.Sync.Mode = string(cmp.Or(g.Mode, nodepool.SyncReport))
	shown.Sync.Code, shown.Sync.Why = g.Code, g.Why
	return shown
}

// Summary is the cluster in a line.
func (v View) Summary(now time.Time) apiv1.ClusterSummary {
	s := apiv1.ClusterSummary{
		Namespace: v.Key.Namespace, Name: v.Key.Name, Mode: v.Mode, ModeReason: v.ModeReason, Frozen: v.Frozen,
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

// Cluster is the cluster with everything there is to say.
func (v View) Cluster(now time.Time) apiv1.Cluster {
	return apiv1.Cluster{
		Namespace: v.Key.Namespace, Name: v.Key.Name, Mode: v.Mode, ModeReason: v.ModeReason, Frozen: v.Frozen, OptIn: v.OptIn, Paused: v.Paused,
		LastCycle: apiv1.Time(v.CycleAt), CycleSeconds: v.CycleTook.Seconds(),
		DataAgeSeconds: age(v.StateAt, now), Error: v.Error,
		Groups: v.groups(),
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

func (v View) groups() []apiv1.Group {
	groups := make([]apiv1.Group, 0, len(v.Plan.Groups))
	for _, planned := range v.Plan.Groups {
		group := apiv1.Group{
			Name: planned.Name, Current: planned.Current, Desired: planned.Desired, Min: planned.Min, Max: planned.Max,
			Resources: planned.Resources, Reasons: apiv1.List(planned.Reasons), Closed: v.closed(planned.Name),
			NumGpus: v.NumGPUs[planned.Name].shown(),
		}
		if group.Resources == nil {
			group.Resources = apiv1.Bundle{}
		}
		group.Ready, group.Idle, group.Starting, group.Leaving = v.count(planned.Name)
		groups = append(groups, group)
	}
	return groups
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
	return apiv1.Unmet{Kind: kind, AskedBy: r.AskedBy, Count: r.Count, Resources: r.Bundle, LabelSelectors: r.Selectors, Slice: r.Slice, Reason: r.Reason}
}

func (v View) changes() []apiv1.Decision {
	changes := slices.Clone(v.Changes[:min(len(v.Changes), maxChanges)])
	for i := range changes {
		changes[i].Pods = apiv1.List(changes[i].Pods)
	}
	return apiv1.List(changes)
}

// waiting counts tasks, actors and bundles of gangs. What request_resources keeps does not wait.
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

// age is null in JSON where nothing was ever read. A clock that was set back does not make data younger than now.
func age(read, now time.Time) *float64 {
	if read.IsZero() {
		return nil
	}
	seconds := max(0, now.Sub(read).Seconds())
	return &seconds
}

// ByKey compares views by namespace and name.
func ByKey(a, b View) int {
	return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
}

// Unscaled says why what the plan launches and stops does not come about; empty where it does.
func (v *View) Unscaled() string {
	switch {
	case v.Frozen:
		return "this is what would be: it is frozen, and nothing is written"
	case v.Mode == nodepool.Shadow || v.Mode == nodepool.Off:
		return "this is what would be: " + v.ModeReason
	case v.Unwritten != "":
		return "the last plan could not be written, and is tried again: " + v.Unwritten
	}
	return ""
}
