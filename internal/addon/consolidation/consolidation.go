// Package consolidation decides which worker of a RayCluster is used so little that the others have room for its work,
// whether that work can move, and whether the saving pays for the move. What is not known keeps a worker where it is.
// consolidate.go is the step of the loop that drains such a worker; Ray moves the work.
package consolidation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/price"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// perHour bounds the workers that are drained in one hour, for each RayCluster.
const perHour = 4

// Deadline returns how long a drain has, three times as long as a worker must be used a little before it. Serve stops a
// replica a little before the deadline, even if the replacement does not run yet
// (docs/reference/facts.md#serve-and-draining-nodes); restartable actors are ended when it is over.
func Deadline(after time.Duration) time.Duration { return max(time.Minute, 3*after) }

// LookEvery returns the interval between two readings of the actor table.
func LookEvery(after time.Duration) time.Duration { return min(time.Minute, after) }

// Input is everything that a decision depends on.
type Input struct {
	View *observe.View
	// Snapshot and Plan are those of the cycle.
	Snapshot *planner.Snapshot
	Plan     *planner.Plan
	// Residents are the actors that have a place on a node.
	Residents []raydemand.Resident
	Prices    *price.Book
}

// Move is one worker whose work could move.
type Move struct {
	Pod, Group string
	Node       raydemand.Node
	// Needs is the least value of the annotation that lets its work move.
	Needs nodepool.Consolidate
	// Used is the share of its GPUs, or of its CPUs if it has none, that is in use.
	Used float64
	// Replicas are those of Serve, Actors all others that move.
	Replicas, Actors int
	// Hourly is the price of the worker; 0 if it is unknown, or if there is none.
	Hourly float64
	// Again is for how long the worker would be paid for nothing if it had to be launched again: while it starts, and
	// until it would be idle for its timeout.
	Again time.Duration
}

// Pays reports whether the move saves money within an hour.
func (m *Move) Pays() bool { return m.Hourly > 0 && m.Again < time.Hour }

const (
	// mostUse is the largest part of a worker that may be in use.
	mostUse = 0.5
	// mostTried bounds the plans of one look.
	mostTried = 16
	// startTime is how long a worker is taken to start, with a new node.
	startTime = 5 * time.Minute
)

// Moves returns the workers whose work fits on the other workers in use, the best first: less disruptive ones, those
// that save more, those that are used less, then by name. Each is judged alone, so only one may be drained before
// the next look.
func Moves(in Input) []Move {
	residents := addon.ByNode(in.Residents)
	var moves []Move
	work := map[string][]raydemand.Request{}
	for _, m := range Candidates(in.View, in.Snapshot) {
		found, movable := addon.MovableWork(m.Node, residents[m.Node.ID])
		if !movable {
			continue
		}
		hourly, _ := addon.Hourly(&in.View.Cluster, m.Worker, in.Prices)
		moves = append(moves, Move{Pod: m.Pod, Group: m.Group, Node: *m.Node, Needs: found.Needs, Used: share(m.Node),
			Replicas: found.Replicas, Actors: found.Actors, Hourly: hourly,
			Again: observe.IdleTimeout(in.View.Cluster, m.Group) + startTime})
		work[m.Pod] = found.Requests
	}
	slices.SortFunc(moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(b.Needs, a.Needs), // serve before restartable
			cmp.Compare(b.Hourly, a.Hourly), cmp.Compare(a.Used, b.Used), cmp.Compare(a.Pod, b.Pod))
	})
	return slices.DeleteFunc(moves[:min(len(moves), mostTried)],
		func(move Move) bool { return !in.fits(move.Pod, work[move.Pod]) })
}

// Unquiet returns why no worker may be drained now whatever runs on it, or "": while anything moves, it is unknown what
// the workers will be used for.
func Unquiet(v *observe.View, s *planner.Snapshot, p *planner.Plan) string {
	switch {
	case len(v.State.Demand.Requests)+len(v.State.Demand.Gangs) > 0:
		return "demand waits"
	case len(p.Launch) > 0:
		return "pods are to be launched"
	case len(p.Terminate) > 0:
		return "idle workers leave first"
	}
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; {
		case n.State == planner.Pending:
			return fmt.Sprintf("worker %s is on its way", n.Pod)
		case n.State == planner.Leaving:
			return fmt.Sprintf("worker %s leaves", n.Pod)
		case n.Going.Ends():
			return fmt.Sprintf("the machine of worker %s may go", n.Pod)
		}
	}
	return ""
}

// Launches reports whether workers are on their way or about to be.
func Launches(s *planner.Snapshot, p *planner.Plan) bool {
	return len(p.Launch) > 0 || slices.ContainsFunc(s.Nodes, func(n planner.Node) bool {
		return n.State == planner.Pending && !n.Going.Ends()
	})
}

// share returns the part of a node that is in use.
func share(n *raydemand.Node) float64 {
	main := raydemand.CPU
	if n.Total[raydemand.GPU] > 0 {
		main = raydemand.GPU
	}
	total := n.Total[main]
	if total <= 0 {
		return 1
	}
	return 1 - n.Available[main].Float()/total.Float()
}

// FindingPossible is the code of a suggestion: the work of a worker fits on others.
const FindingPossible = "consolidation-possible"

// Reason is the code of the reason for a drain, in metrics.
const Reason = "consolidation"

// mostShown bounds the suggestions for one RayCluster.
const mostShown = 3

// Findings returns the suggestions. Next says when the first of them that is allowed will be carried out, or what
// prevents it; empty if none is allowed, or if it is carried out now.
func Findings(
	moves []Move, cluster nodepool.ClusterKey, opted nodepool.Consolidate, currency, next string,
) []raydemand.Finding {
	var all []raydemand.Finding
	for i := range moves[:min(len(moves), mostShown)] {
		m := &moves[i]
		f := raydemand.Finding{Code: FindingPossible, Severity: raydemand.Info,
			Object: "RayCluster " + cluster.String(), Field: "metadata.annotations." + nodepool.ConsolidateAnnotation,
			Seen: string(opted), Why: m.Text(currency)}
		switch {
		case !opted.Allows(m.Needs):
			f.Fix = fmt.Sprintf("kubectl -n %s annotate raycluster %s --overwrite %s=%s", cluster.Namespace,
				cluster.Name, nodepool.ConsolidateAnnotation, m.Needs)
		case next != "":
			f.Fix = "Heliostat drains one worker at a time: " + next
		default:
			f.Fix = "Heliostat drains it now"
		}
		all = append(all, f)
	}
	return all
}

// overdue returns the draining workers whose deadline is over, if their actors are to be read in this cycle: the
// RayCluster lets restartable actors move, and the last look was not just now. Until the view says that they may, none
// may end. After a restart of this process, and after the RayCluster has opted in or is managed again, a drain has its
// whole time again.
func (c *consolidator) overdue(v *observe.View, asked scaledown.Drains, deadline time.Duration) []observe.Member {
	const lookAgain = 5 * time.Second
	switch {
	case v.Mode != nodepool.Managed || !v.Cluster.Consolidate.Allows(nodepool.ConsolidateRestartable):
		c.optedIn = time.Time{}
		return nil
	case c.optedIn.IsZero():
		c.optedIn = v.Now
	}
	if !v.Live() || v.Now.Sub(c.looked) < lookAgain || v.Now.Sub(c.optedIn) < deadline {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(v.Members), func(m observe.Member) bool {
		return !m.Joined() || m.Node.Status != raydemand.Draining || !m.Counted() ||
			asked.AcceptedFor(m.Node.ID, v.Now) < deadline
	})
}
