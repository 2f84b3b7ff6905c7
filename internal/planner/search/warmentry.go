package search

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// WarmEntry is an entry of the snapshot's warm capacity, and what the plan does for it.
type WarmEntry struct {
	*model.WarmEntry
	// Group is the number of the entry's group, or negative. Item is its bundle if it has no group.
	Group int
	Item  *vector.Item
	// Ready, Coming and Launching count replicas or bundles.
	Ready, Coming, Launching int64
	// Nodes are the nodes that have joined, are free for the entry and hold nothing else.
	Nodes []int
	// pods counts pods on their way, by group, that are free for the entry alone.
	pods map[int]int64
}

// Missing is how many replicas or bundles the entry lacks.
func (e *WarmEntry) Missing() int64 { return max(0, e.Count-e.total()) }

func (e *WarmEntry) total() int64 { return e.Ready + e.Coming + e.Launching }

// newWarm lists the entries: those with a group first, because they take whole workers, each kind in the order of the
// policy.
func newWarm(r *fleet.Fleet, s *model.Snapshot) (all []WarmEntry) {
	if s.Warm == nil {
		return nil
	}
	for _, grouped := range []bool{true, false} {
		for i := range s.Warm.Keep {
			e := &s.Warm.Keep[i]
			if (e.Group != "") != grouped || e.Count <= 0 {
				continue
			}
			made := WarmEntry{WarmEntry: e, Group: -1}
			if grouped {
				made.Group = slices.IndexFunc(r.Groups, func(g fleet.Group) bool { return g.Name == e.Group })
			} else {
				request := e.Request()
				made.Item = r.NewItem(request, r.NeedOf(request.Bundle), e.Name)
			}
			all = append(all, made)
		}
	}
	return all
}

// merge joins the result of another ledger: the one with less counts, and all nodes stay.
func (e *WarmEntry) merge(other *WarmEntry, first bool) {
	nodes := append(slices.Clone(e.Nodes), other.Nodes...)
	slices.Sort(nodes)
	if first || cmp.Or(cmp.Compare(other.total(), e.total()), cmp.Compare(other.Ready, e.Ready),
		cmp.Compare(other.Coming, e.Coming)) < 0 {
		*e = *other
	}
	e.Nodes = slices.Compact(nodes)
}

// WarmRules say in which groups warm capacity may keep workers, and in which it may launch some.
type WarmRules struct{ Keep, Launch []bool }

// WarmLaunch is how many pods of a group are launched for warm capacity.
type WarmLaunch struct {
	Group int
	Pods  int64
}
