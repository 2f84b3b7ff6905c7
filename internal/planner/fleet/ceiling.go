package fleet

import (
	"cmp"
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Ceilings are the pools that limit how many pods groups can have; nil if no pool limits a group.
type Ceilings struct {
	// capacity is the amount of each contended resource in each pool, in units.
	capacity []int64
	Uses     [][]poolUse // by group; none means that nothing limits the group
	Most     []int64     // pods of each group that fit on all of its pools if no other pods use them
}

// poolUse is one pool that a group's pods can use, with the units of each class that one pod takes.
type poolUse []classUse

type classUse struct {
	class int
	units int64
}

// newCeilings finds the groups whose pools are all limited. If a pool's capacity of a resource is unknown, it is as
// much as the group with the largest use of it could take.
func newCeilings(groups []Group) *Ceilings {
	c := &Ceilings{Uses: make([][]poolUse, len(groups)), Most: make([]int64, len(groups))}
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
			hasShare := false
			for _, share := range pool.Shares {
				use = append(use, classUse{class(pool.Name, share.Resource, share.Capacity), max(share.Units, 1)})
				hasShare = hasShare || share.Resource == pool.Resource
			}
			if !hasShare {
				use = append(use, classUse{class(pool.Name, pool.Resource, vector.TimesAtMost(most, units)), units})
			}
			c.Uses[i] = append(c.Uses[i], use)
			c.Most[i] = min(c.Most[i]+most, vector.MaxCount)
		}
	}
	if len(classes) == 0 {
		return nil
	}
	return c
}

// bounded reports whether all pools that the group can use have a limit.
func (g *Group) bounded() bool {
	return len(g.Pools) > 0 && !slices.ContainsFunc(g.Pools, func(p model.GroupPool) bool { return p.MaxPods == nil })
}

// Occupied returns what pods take of each pool: the present ones and the given ones. Groups with the fewest pools come
// first.
func (r *Fleet) Occupied(given []int64) []int64 {
	c := r.Ceilings
	taken := make([]int64, len(c.capacity))
	order := make([]int, 0, len(r.Groups))
	for i := range r.Groups {
		if len(c.Uses[i]) > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(c.Uses[a]), len(c.Uses[b])) })
	for _, i := range order {
		c.Occupy(taken, i, r.Groups[i].Current+given[i])
	}
	return taken
}

// fits returns how many more pods have room in the pool.
func (c *Ceilings) fits(taken []int64, use poolUse) int64 {
	n := int64(vector.MaxCount)
	for _, u := range use {
		n = min(n, max(c.capacity[u.class]-taken[u.class], 0)/u.units)
	}
	return n
}

// Occupy books pods of a group on its pools, one pool after the other. Existing pods that find no room in this account
// do not limit other groups.
func (c *Ceilings) Occupy(taken []int64, i int, pods int64) {
	for _, use := range c.Uses[i] {
		n := min(pods, c.fits(taken, use))
		for _, u := range use {
			taken[u.class] += n * u.units
		}
		pods -= n
	}
}

// Room returns how many more pods of a group fit on its pools, for a group that has this many.
func (c *Ceilings) Room(taken []int64, i int, pods int64) int64 {
	if c == nil || len(c.Uses[i]) == 0 {
		return vector.MaxCount
	}
	var n int64
	for _, use := range c.Uses[i] {
		n = min(n+c.fits(taken, use), vector.MaxCount)
	}
	return max(min(n, c.Most[i]-pods), 0)
}

// WithinPools removes from a proposal the pods that the pools have no room for, beyond those given before.
func (r *Fleet) WithinPools(proposal, given []int64) {
	if r.Ceilings == nil {
		return
	}
	taken := r.Occupied(given)
	for i := range proposal {
		hosts := r.Groups[i].Hosts
		n := min(proposal[i]-given[i], r.Ceilings.Room(taken, i, r.Groups[i].Current+given[i]))
		n -= n % hosts
		r.Ceilings.Occupy(taken, i, n)
		proposal[i] = given[i] + n
	}
}

// PoolRoom returns how many more pods of a group its pools can hold.
func (r *Fleet) PoolRoom(i int, given []int64) int64 {
	if r.Ceilings == nil {
		return vector.MaxCount
	}
	return r.Ceilings.Room(r.Occupied(given), i, r.Groups[i].Current+given[i])
}

// RoomBesideCards returns how many more pods of a group fit on its k-th pool by everything but devices: CPU, memory,
// pod slots. It is vector.MaxCount if nothing is known.
func (r *Fleet) RoomBesideCards(i, k int, given []int64) int64 {
	room := int64(vector.MaxCount)
	if r.Ceilings == nil || len(r.Ceilings.Uses[i]) == 0 {
		return room
	}
	taken, pool := r.Occupied(given), &r.Groups[i].Pools[k]
	for n, share := range pool.Shares {
		// the first use is the group's own pod limit
		if u := r.Ceilings.Uses[i][k][1+n]; share.Resource != pool.Resource {
			room = min(room, r.Ceilings.fits(taken, poolUse{u}))
		}
	}
	return room
}
