package planner

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// FindingPoolWithoutNodes says that a pool of a snapshot is of none of the nodes beside it, and has no shape.
const FindingPoolWithoutNodes = "pool-without-nodes"

// GroupPool is a pool of Kubernetes nodes that a group's pods can land on.
type GroupPool struct {
	Name string `json:"name"`
	// MaxPods is how many pods of the group it can ever have, on nodes that are there and nodes that it may add; nil: nothing bounds it.
	MaxPods *int64 `json:"maxPods"`
	// Resource is what groups compete for on the pool's nodes, by Kubernetes' name, and Units how much of it one pod takes. Groups that take
	// other resources of the same nodes, another MIG profile for example, leave this one alone.
	Resource string `json:"resource,omitempty"`
	Units    int64  `json:"units,omitempty"`
	// ProfileFixed: the MIG profile of the pool was chosen when it was made and cannot be changed, as on AKS.
	ProfileFixed bool `json:"profileFixed,omitempty"`
	// Shares are all that a pod takes of the pool's nodes, of which the pool's whole is known.
	Shares []PoolShare `json:"shares,omitempty"`
	// Cards are those of the nodes that hold pods of the group, as they are cut now.
	Cards []nodepool.PoolCards `json:"cards,omitempty"`
}

// PoolShare is what one pod takes of a resource of a pool, and what all nodes that are there and may be added have of it: CPU in thousandths,
// memory in MiB, all else as Kubernetes counts it.
type PoolShare struct {
	Resource string `json:"resource"`
	Units    int64  `json:"units"`
	Capacity int64  `json:"capacity"`
}

// poolsOf are the pools of a group, where all of them are known.
func poolsOf(g nodepool.WorkerGroup) []GroupPool {
	resource, units := contended(g)
	_, named := g.Pod.Selector["kubernetes.azure.com/agentpool"]
	var pools []GroupPool
	for _, pods := range g.PoolPods {
		pool := GroupPool{Name: pods.Pool, Resource: resource, Units: units, ProfileFixed: named || pods.ProfileFixed, Cards: pods.Cards}
		if most, bounded := pods.Most(); bounded {
			pool.MaxPods, pool.Shares = &most, sharesOf(g.Pod.Requests, pods.Has)
		}
		pools = append(pools, pool)
	}
	return pools
}

// contended is what a pod takes of a node that others want too: its devices, else its CPU, in thousandths.
func contended(g nodepool.WorkerGroup) (resource string, units int64) {
	if len(g.Slices) > 0 {
		return g.Slices[0].Resource, g.Slices[0].UnitsPerPod
	}
	const milli = raydemand.One / 1000
	if cpu := g.Pod.Requests["cpu"]; cpu >= milli {
		return "cpu", int64(cpu / milli)
	}
	return "pods", 1
}

// sharesOf rounds what a pod takes down and what the pool has up, so that no place is lost by it.
func sharesOf(takes, has nodepool.Quantities) []PoolShare {
	var shares []PoolShare
	for _, name := range slices.Sorted(maps.Keys(has)) {
		unit, want := raydemand.One, takes[name]
		switch {
		case name == "pods":
			want = raydemand.One
		case name == "cpu":
			unit /= 1000
		case name == "memory":
			unit <<= 20
		}
		if units := int64(want / unit); units > 0 && units <= math.MaxInt32 {
			shares = append(shares, PoolShare{name, units, (int64(has[name]) + int64(unit) - 1) / int64(unit)})
		}
	}
	return shares
}

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
			most, units := min(max(*pool.MaxPods, 0), maxCount), min(max(pool.Units, 1), math.MaxInt32)
			use := poolUse{{class(pool.Name, "pods of group "+groups[i].Name, most), 1}}
			told := false
			for _, share := range pool.Shares {
				use = append(use, classUse{class(pool.Name, share.Resource, share.Capacity), max(share.Units, 1)})
				told = told || share.Resource == pool.Resource
			}
			if !told {
				use = append(use, classUse{class(pool.Name, pool.Resource, timesUpTo(most, units)), units})
			}
			c.uses[i] = append(c.uses[i], use)
			c.most[i] = min(c.most[i]+most, maxCount)
		}
	}
	if len(classes) == 0 {
		return nil
	}
	return c
}

func timesUpTo(a, b int64) int64 {
	if a > math.MaxInt64/4/b {
		return math.MaxInt64 / 4
	}
	return a * b
}

// bounded reports whether the group can land on pools of known ends alone.
func (g *group) bounded() bool {
	return len(g.Pools) > 0 && !slices.ContainsFunc(g.Pools, func(p GroupPool) bool { return p.MaxPods == nil })
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
	n := int64(maxCount)
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
		return maxCount
	}
	var n int64
	for _, use := range c.uses[i] {
		n = min(n+c.fits(taken, use), maxCount)
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
		return maxCount
	}
	return r.ceilings.room(r.occupied(given), i, r.groups[i].current+given[i])
}

// roomBesideCards is how many more pods of a group its k-th pool holds by what they take beside their devices: CPU, memory, places for pods.
// Where nothing tells, it is maxCount.
func (r *roster) roomBesideCards(i, k int, given []int64) int64 {
	room := int64(maxCount)
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
func (w *words) poolLimit(i int, given []int64) (Reason, bool) {
	if w.poolRoom(i, given) >= w.groups[i].hosts {
		return Reason{}, false
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
	return Reason{CodePoolCeiling, fmt.Sprintf("%s%s can hold no more pods of group %s, at most %d without others (%s)",
		word, strings.Join(names, ", "), g.Name, w.ceilings.most[i], w.having(i, given[i]))}, true
}
