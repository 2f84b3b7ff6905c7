package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// ceilings are the pools that bound groups; nil where none does.
type ceilings struct {
	// capacity is what each pool has of each resource that groups compete for, in units.
	capacity []int64
	uses     [][]poolUse // by group; none: nothing bounds the group
	most     []int64     // pods of each group on all of its pools, beside nobody
}

// poolUse is one place where a group's pods take units, of each class so many.
type poolUse []classUse

type classUse struct {
	class int
	units int64
}

// newCeilings finds the groups all of whose pools are bounded. Where it is not told what a pool has of a resource, it has as much as that group
// could use which could use most.
func newCeilings(groups []group) *ceilings {
	c := &ceilings{uses: make([][]poolUse, len(groups)), most: make([]int64, len(groups))}
	classes := map[[2]string]int{}
	class := func(pool, resource string, capacity int64) int {
		id := [2]string{pool, resource}
		n, known := classes[id]
		if !known {
			n = len(c.capacity)
			classes[id] = n
			c.capacity = append(c.capacity, 0)
		}
		c.capacity[n] = max(c.capacity[n], capacity)
		return n
	}
	for i := range groups {
		if !groups[i].bounded() {
			continue
		}
		for _, pool := range groups[i].Pools {
			most, units := min(max(*pool.MaxPods, 0), vector.MaxCount), min(max(pool.Units, 1), math.MaxInt32)
			use := poolUse{{class(pool.Name, "pods of group "+groups[i].Name, most), 1}}
			told := false
			for _, share := range pool.Shares {
				use = append(use, classUse{class(pool.Name, share.Resource, share.Capacity), max(share.Units, 1)})
				told = told || share.Resource == pool.Resource
			}
			if !told {
				use = append(use, classUse{class(pool.Name, pool.Resource, vector.TimesAtMost(most, units)), units})
			}
			c.uses[i] = append(c.uses[i], use)
			c.most[i] = min(c.most[i]+most, vector.MaxCount)
		}
	}
	if len(classes) == 0 {
		return nil
	}
	return c
}

// bounded reports whether the group can land on pools of known ends alone.
func (g *group) bounded() bool {
	return len(g.Pools) > 0 && !slices.ContainsFunc(g.Pools, func(p model.GroupPool) bool { return p.MaxPods == nil })
}

// occupied is what pods take of each pool: those that groups have, and those given. Groups that have fewest pools to go to come first.
func (r *roster) occupied(given []int64) []int64 {
	c := r.ceilings
	taken := make([]int64, len(c.capacity))
	order := make([]int, 0, len(r.groups))
	for i := range r.groups {
		if len(c.uses[i]) > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(c.uses[a]), len(c.uses[b])) })
	for _, i := range order {
		c.occupy(taken, i, r.groups[i].current+given[i])
	}
	return taken
}

// fits is how many pods the place has left.
func (c *ceilings) fits(taken []int64, use poolUse) int64 {
	n := int64(vector.MaxCount)
	for _, u := range use {
		n = min(n, max(c.capacity[u.class]-taken[u.class], 0)/u.units)
	}
	return n
}

// occupy books pods of a group on its pools, one after the other. What is there and finds no place by this account bounds nobody further.
func (c *ceilings) occupy(taken []int64, i int, pods int64) {
	for _, use := range c.uses[i] {
		n := min(pods, c.fits(taken, use))
		for _, u := range use {
			taken[u.class] += n * u.units
		}
		pods -= n
	}
}

// room is how many more pods of a group that has so many its pools can take.
func (c *ceilings) room(taken []int64, i int, pods int64) int64 {
	if c == nil || len(c.uses[i]) == 0 {
		return vector.MaxCount
	}
	var n int64
	for _, use := range c.uses[i] {
		n = min(n+c.fits(taken, use), vector.MaxCount)
	}
	return max(min(n, c.most[i]-pods), 0)
}

// bindPools lowers the room of groups on a ledger to that of their pools, with the pods given on their way.
func (p *Placer) bindPools(l *ledger, given []int64) {
	if p.ceilings == nil {
		return
	}
	l.ceilings, l.taken, l.pods = p.ceilings, p.occupied(given), make([]int64, len(p.groups))
	for i := range p.groups {
		l.pods[i] = p.groups[i].current + given[i]
		l.room[i] = min(l.room[i], l.ceilings.room(l.taken, i, l.pods[i]))
	}
}

// occupy books launched pods and lowers the room of all groups that compete with them.
func (l *ledger) occupy(group int, count int64) {
	if l.ceilings == nil || len(l.ceilings.uses[group]) == 0 {
		return
	}
	l.ceilings.occupy(l.taken, group, count)
	l.pods[group] += count
	for i := range l.room {
		l.room[i] = min(l.room[i], l.ceilings.room(l.taken, i, l.pods[i]))
	}
}

// withinPools takes from a proposal what the pools have no room for, beside what was given before.
func (r *roster) withinPools(proposal, given []int64) {
	if r.ceilings == nil {
		return
	}
	taken := r.occupied(given)
	for i := range proposal {
		hosts := r.groups[i].hosts
		n := min(proposal[i]-given[i], r.ceilings.room(taken, i, r.groups[i].current+given[i]))
		n -= n % hosts
		r.ceilings.occupy(taken, i, n)
		proposal[i] = given[i] + n
	}
}

// poolRoom is how many more pods of a group its pools hold.
func (r *roster) poolRoom(i int, given []int64) int64 {
	if r.ceilings == nil {
		return vector.MaxCount
	}
	return r.ceilings.room(r.occupied(given), i, r.groups[i].current+given[i])
}

// roomBesideCards is how many more pods of a group its k-th pool holds by what they take beside their devices: CPU, memory, places for pods.
// Where nothing tells, it is maxCount.
func (r *roster) roomBesideCards(i, k int, given []int64) int64 {
	room := int64(vector.MaxCount)
	if r.ceilings == nil || len(r.ceilings.uses[i]) == 0 {
		return room
	}
	taken, pool := r.occupied(given), &r.groups[i].Pools[k]
	for n, share := range pool.Shares {
		if u := r.ceilings.uses[i][k][1+n]; share.Resource != pool.Resource { // the first use is that of the group's own places
			room = min(room, r.ceilings.fits(taken, poolUse{u}))
		}
	}
	return room
}

// poolLimit says that a group's pools hold no more replicas of it.
func (w *words) poolLimit(i int, given []int64) (model.Reason, bool) {
	if w.poolRoom(i, given) >= w.groups[i].hosts {
		return model.Reason{}, false
	}
	g := &w.groups[i]
	names := make([]string, len(g.Pools))
	for k, pool := range g.Pools {
		names[k] = cmp.Or(pool.Name, "of nodes without a name")
	}
	word := "pool "
	if len(names) > 1 {
		word = "pools "
	}
	return model.Reason{Code: model.CodePoolCeiling, Message: fmt.Sprintf("%s%s can hold no more pods of group %s, at most %d without others (%s)",
		word, strings.Join(names, ", "), g.Name, w.ceilings.most[i], w.having(i, given[i]))}, true
}
