// Package sharedlimits says how many pods the groups of a snapshot may have together, because they share nodes
// (Ceilings) and quotas (Quotas). Limits do not change after New returns them. The package must not know the limits of
// a single group, what demand waits, or what launching costs.
package sharedlimits

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// Group is a group with the pods of one replica, and those that it has or has requested.
type Group struct {
	*model.Group
	Hosts, Current int64
}

// Limits are what groups share. Groups have the numbers of their positions.
type Limits struct {
	groups []Group
	// Ceilings say how many pods fit together on the nodes; nil if nothing limits a group.
	Ceilings *Ceilings
	// Known are the ceilings if no pod is tried in a pool of which nothing shows that its nodes can hold it, and Hoped
	// if any number may be; Ceilings themselves allow one replica of each group. All are the same if there is no such
	// pool.
	Known, Hoped *Ceilings
	// Quotas bound what the pods of groups may have together; nil if nothing bounds a group.
	Quotas *Quotas
}

// plenty is more pods than any group may have, and is still a bound.
const plenty = vector.MaxCount / 2

// New finds the groups whose pods can only be on a limited number of nodes, and the quotas.
func New(s *model.Snapshot, groups []Group) *Limits {
	l := &Limits{groups: groups, Quotas: newQuotas(s, groups)}
	l.Ceilings = newCeilings(s, groups, func(g *Group) int64 { return g.Hosts })
	if l.Known, l.Hoped = l.Ceilings, l.Ceilings; l.TriesPools() {
		l.Known = newCeilings(s, groups, func(*Group) int64 { return 0 })
		l.Hoped = newCeilings(s, groups, func(*Group) int64 { return plenty })
	}
	return l
}

// TriesPools reports whether there is a group of which one replica at a time may be tried in a pool.
func (l *Limits) TriesPools() bool { return l.Ceilings != nil && len(l.Ceilings.unproven) > 0 }

// WithinShared removes from a proposal the pods that no quota and no node has room for, beyond those given before.
func (l *Limits) WithinShared(c *Ceilings, proposal, given []int64) {
	l.withinQuotas(proposal, given)
	if c == nil {
		return
	}
	on := c.Occupied(given)
	for _, i := range c.order {
		n := min(proposal[i]-given[i], c.Room(on, i))
		n -= n % l.groups[i].Hosts
		c.Occupy(on, i, n)
		proposal[i] = given[i] + n
	}
}

// PoolRoom returns how many more pods of a group the nodes can hold.
func (l *Limits) PoolRoom(i int, given []int64) int64 {
	if !l.Ceilings.Limits(i) {
		return vector.MaxCount
	}
	return l.Ceilings.Room(l.Ceilings.Occupied(given), i)
}

// PoolRoomUnpromised returns how many more pods of a group the nodes could hold if no other RayCluster had pods on its
// way to them.
func (l *Limits) PoolRoomUnpromised(i int, given []int64) int64 {
	if !l.Ceilings.Limits(i) || len(l.Ceilings.promised) == 0 {
		return l.PoolRoom(i, given)
	}
	c := l.Ceilings
	return c.Room(newChain(c, c.packer.Empty()).place(c, given), i)
}

// PromisedBeside returns the promises to pods of other RayClusters that can use nodes of a group.
func (l *Limits) PromisedBeside(i int) []model.Promise {
	c := l.Ceilings
	if !c.Limits(i) {
		return nil
	}
	name := c.pods[c.kinds[i]].Name
	var list []model.Promise
	for _, p := range c.promised {
		if p.Pods > 0 && slices.ContainsFunc(c.places, func(place landing.Place) bool {
			return slices.Contains(place.Accepts, name) && slices.Contains(place.Accepts, p.Pod.Name)
		}) {
			list = append(list, p.Promise)
		}
	}
	return list
}

// RoomBesideCards returns how many more pods of a group fit on its k-th pool by everything but devices: CPU, memory,
// pod slots. It is vector.MaxCount if nothing is known.
func (l *Limits) RoomBesideCards(i, k int, given []int64) int64 {
	if !l.Ceilings.Limits(i) {
		return vector.MaxCount
	}
	pool := &l.groups[i].Pools[k]
	bare := l.Ceilings.without(pool)
	on := bare.packer.Empty()
	for _, j := range bare.order {
		bare.Occupy(on, j, bare.present[j]+given[j])
	}
	return bare.Room(on, i)
}

// KnownToFit returns the part of some launches, beyond those before them, for which there is room on nodes that are
// known, or known to come.
func (l *Limits) KnownToFit(given, before []int64) []int64 {
	fitting := slices.Clone(given)
	l.WithinShared(l.Known, fitting, before)
	return fitting
}

// Tries returns how many of a group's pods, present and given ones, have no other place than the pool in which they are
// tried.
func (l *Limits) Tries(i int, given []int64) int64 {
	if len(l.Ceilings.UnprovenPools(i)) == 0 {
		return 0
	}
	return l.Known.placeless(i, given)
}

// withinQuotas removes from a proposal the pods that exceed a quota, beyond those given before.
func (l *Limits) withinQuotas(proposal, given []int64) {
	left := l.Quotas.Left(given)
	for i := range proposal {
		n := min(proposal[i]-given[i], l.Quotas.Room(left, i))
		n -= n % l.groups[i].Hosts
		l.Quotas.Take(left, i, n)
		proposal[i] = given[i] + n
	}
}

// QuotaRoom returns how many more pods of a group the quotas allow.
func (l *Limits) QuotaRoom(i int, given []int64) int64 { return l.Quotas.Room(l.Quotas.Left(given), i) }
