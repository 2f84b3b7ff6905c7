package model

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// WithMoving returns the snapshot with the work of nodes whose machine goes as further pending requests, so that a
// replacement is there before the work loses its place: what is in use on each node, in one bundle, because nothing
// says how the work divides it. After the deadline the work is lost or has ended; what is left of it waits by itself.
func (s *Snapshot) WithMoving() *Snapshot {
	var moving []raydemand.Request
	for i := range s.Nodes {
		if n := &s.Nodes[i]; s.moves(n) {
			if used := n.InUse(); !used.IsZero() {
				moving = append(moving,
					raydemand.Request{Bundle: used, Count: 1, Moving: true, Selectors: n.ownGroupFirst(used)})
			}
		}
	}
	if len(moving) == 0 {
		return s
	}
	with := *s
	with.Requests = slices.Concat(s.Requests, moving)
	return &with
}

// moves reports whether the work of the node needs another place.
func (s *Snapshot) moves(n *Node) bool {
	return n.State == Leaving && n.Going != nil && n.Going.Certain &&
		(n.Going.Deadline.IsZero() || s.TakenAt.Before(n.Going.Deadline))
}

// ownGroupFirst returns selectors that prefer the group of the node over all others: what is in use does not say by
// which labels the work selected its node, and the group's nodes have them. Nothing is preferred if the cloud takes the
// machine back, because others like it may be short, or if the work would hold an accelerator that it does not use.
func (n *Node) ownGroupFirst(used raydemand.Bundle) []raydemand.Selector {
	if n.Going.Reclaimed {
		return nil
	}
	for name, amount := range n.Total {
		if raydemand.IsUnitInstance(name) && amount > 0 && used[name] == 0 {
			return nil
		}
	}
	own := raydemand.Constraint{Key: nodeGroupLabel, Op: raydemand.In, Values: []string{n.Group}}
	return []raydemand.Selector{raydemand.NewSelector(own), {}}
}

// InUse returns what work uses of the node, as far as Ray reports it. Objects need no node of their own, and
// node:ADDRESS exists once.
func (n *Node) InUse() raydemand.Bundle {
	used := raydemand.Bundle{}
	for name, total := range n.Total {
		taken := total - n.Available.Has(name)
		if n.Available != nil && taken > 0 && name != raydemand.ObjectStoreMemory && !strings.HasPrefix(name, "node:") {
			used[name] = taken
		}
	}
	return used
}
