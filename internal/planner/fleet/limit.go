package fleet

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// conservativeStep is the least that upscalingMode Conservative lets a group have on its way at once
// (Ray's first autoscaler: max(5, running); KubeRay's tests expect it still).
const conservativeStep = 5

// findBlocked finds why a group takes no launches, whatever its limits.
func (g *Group) findBlocked(mode string) {
	switch {
	case g.CoolingSeconds > 0:
		g.Blocked = model.Reason{
			Code:    model.CodeCoolingDown,
			Message: strings.TrimSuffix("cooling down for "+phrase.Span(g.CoolingSeconds)+": "+g.Closed, ": "),
		}
	case g.Closed != "":
		g.Blocked = model.Reason{Code: model.CodeClosed, Message: "closed: " + g.Closed}
	case g.LimitsConflict():
		g.Blocked = model.Reason{
			Code: model.CodeInvalidLimits,
			Message: fmt.Sprintf("minReplicas %d is above maxReplicas %d, with which the operator stops the whole cluster; "+
				"the group is left as it is until that is mended", g.Min, g.Max),
		}
	}
	g.InFlight = vector.MaxCount
	if mode == "Conservative" {
		g.InFlight = max(conservativeStep, g.Joined)
	}
}

// LimitsConflict reports whether the group's limits exclude each other. The operator stops the whole cluster for it, so
// the group is left as it is, whatever else there is to say about it: nothing is launched or stopped.
func (g *Group) LimitsConflict() bool { return g.MinPods > g.MaxPods }

// Remaining counts the pods that stay: joined, on their way, or asked for.
func (g *Group) Remaining() int64 { return g.Live + g.Missing - g.Stopping }

// Room returns how many pods may be launched beside those given, in whole replicas, however many may be on their way at
// once. Nodes that are being stopped still fill the group: they exist until they have been drained.
func (g *Group) Room(given int64) int64 {
	if g.Blocked.Code != "" {
		return 0
	}
	n := max(0, g.MaxPods-g.Current-given)
	return n - n%g.Hosts
}

// Spare returns how many pods the bound on all workers still allows.
func (r *Fleet) Spare(given []int64) int64 {
	spare := r.Bound
	for i := range r.Groups {
		spare -= r.Groups[i].Current + given[i]
	}
	return max(spare, 0)
}

// Preference is a group's own: its chance of being had, in halves, and its priority. Finer steps would let a group that
// failed a second earlier win over one that is better and cheaper.
type Preference struct {
	Recoverable float64
	Priority    int
}

func (s Preference) Compare(other Preference) int {
	return cmp.Or(cmp.Compare(s.Recoverable, other.Recoverable), cmp.Compare(s.Priority, other.Priority))
}

func (g *Group) Preference() Preference {
	s := Preference{1, g.Priority}
	if g.RecoverableScore != nil {
		s.Recoverable = math.Floor(2**g.RecoverableScore) / 2
	}
	return s
}

// Carries reports whether the group's pods carry a label that a gang wants to share, if it does.
func (g *Group) Carries(topology string) bool {
	_, has := g.Labels[topology]
	return topology == "" || has
}

// Pending counts the pods that were asked for before this plan and have not joined.
func (g *Group) Pending() int64 { return g.Live - g.Joined + g.Missing }
