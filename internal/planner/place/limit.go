package place

import (
	"cmp"
	"math"

	"heliostat.dev/heliostat/internal/planner/model"
)

// conservativeStep is the minimum number of pods that upscalingMode Conservative allows a group on the way at once
// (Ray's first autoscaler: max(5, running); KubeRay's tests still expect it).
const conservativeStep = 5

// findBlocked finds why a group takes no launches, regardless of its limits.
func (g *Group) findBlocked(mode string) {
	switch {
	case g.Excluded() && (g.Closed == "" || g.CoolingSeconds > 0):
		g.Blocked = model.CodeClosed
	case g.CoolingSeconds > 0:
		g.Blocked = model.CodeCoolingDown
	case g.Closed != "":
		g.Blocked = model.CodeClosed
	case g.LimitsConflict():
		g.Blocked = model.CodeInvalidLimits
	}
	g.InFlight = MaxCount
	if mode == "Conservative" {
		g.InFlight = max(conservativeStep, g.Joined)
	}
	if g.Trying() {
		g.InFlight = g.Hosts
	}
}

// Trying reports whether the group launches one replica at a time because nothing shows that a node can hold its pods.
// A pod that has joined runs on a node.
func (g *Group) Trying() bool {
	return g.NodeFit != nil && g.NodeFit.Verdict == model.FitTrying && g.Joined == 0
}

// LimitsConflict reports whether the group's minimum is above its maximum. The operator then stops reconciling the
// whole cluster, so the plan neither launches nor stops pods of the group.
func (g *Group) LimitsConflict() bool { return g.MinPods > g.MaxPods }

// Remaining counts the pods that stay: joined, on their way, or requested.
func (g *Group) Remaining() int64 { return g.Live + g.Missing - g.Stopping }

// room returns how many more pods can be launched in addition to those given, in whole replicas, regardless of
// in-flight caps. Nodes that are being stopped still count: they exist until they are drained.
func (g *Group) room(given int64) int64 {
	if g.Blocked != "" {
		return 0
	}
	n := max(0, g.MaxPods-g.Current-given)
	return n - n%g.Hosts
}

// Spare returns how many more pods the bound on all workers allows.
func (r *Fleet) Spare(given []int64) int64 {
	spare := r.Bound
	for i := range r.Groups {
		spare -= r.Groups[i].Current + given[i]
	}
	return max(spare, 0)
}

// Preference is the preference of one group: whether a node is known that could hold its pods, its chance that a launch
// succeeds, in halves, and its priority. With finer steps, a group that failed one second earlier could win over a
// better and cheaper one.
type Preference struct {
	Known       bool
	Recoverable float64
	Priority    int
}

func (s Preference) compare(other Preference) int {
	return cmp.Or(
		CompareBool(s.Known, other.Known),
		cmp.Compare(s.Recoverable, other.Recoverable),
		cmp.Compare(s.Priority, other.Priority),
	)
}

func (g *Group) Preference() Preference {
	s := Preference{!g.Trying() && !g.Waiting(), 1, g.Priority}
	if g.RecoverableScore != nil {
		s.Recoverable = math.Floor(2**g.RecoverableScore) / 2
	}
	return s
}

// Carries reports whether the group's pods have the topology label of a gang, if the gang has one.
func (g *Group) Carries(topology string) bool {
	_, has := g.Labels[topology]
	return topology == "" || has
}

// Pending counts the pods that were requested before this plan and have not joined.
func (g *Group) Pending() int64 { return g.Live - g.Joined + g.Missing }
