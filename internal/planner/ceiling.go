package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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
}

// poolsOf are the pools of a group, where all of them are known.
func poolsOf(g nodepool.WorkerGroup) []GroupPool {
	resource, units := contended(g)
	_, named := g.Pod.Selector["kubernetes.azure.com/agentpool"]
	var pools []GroupPool
	for _, pods := range g.PoolPods {
		pool := GroupPool{Name: pods.Pool, Resource: resource, Units: units, ProfileFixed: named || pods.ProfileFixed}
		if most, bounded := pods.Most(); bounded {
			pool.MaxPods = &most
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

// ceilings are the pools that bound groups; nil where none does.
type ceilings struct {
	// capacity is what each pool has of each resource that groups compete for, in units.
	capacity []int64
	uses     [][]poolUse // by group; none: nothing bounds the group
	most     []int64     // pods of each group on all of its pools, beside nobody
}

// poolUse is one place where a group's pods take units.
type poolUse struct {
	class int
	units int64
}

// newCeilings finds the groups all of whose pools are bounded. A pool has as much of a resource as that group could use which could use most.
func newCeilings(groups []group) *ceilings {
	c := &ceilings{uses: make([][]poolUse, len(groups)), most: make([]int64, len(groups))}
	classes := map[[2]string]int{}
	for i := range groups {
		if !groups[i].bounded() {
			continue
		}
		for _, pool := range groups[i].Pools {
			id := [2]string{pool.Name, pool.Resource}
			class, known := classes[id]
			if !known {
				class = len(c.capacity)
				classes[id] = class
				c.capacity = append(c.capacity, 0)
			}
			most, units := min(max(*pool.MaxPods, 0), maxCount), min(max(pool.Units, 1), math.MaxInt32)
			c.capacity[class] = max(c.capacity[class], timesUpTo(most, units))
			c.uses[i] = append(c.uses[i], poolUse{class, units})
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
func (p *planning) occupied(given []int64) []int64 {
	c := p.ceilings
	taken := make([]int64, len(c.capacity))
	order := make([]int, 0, len(p.groups))
	for i := range p.groups {
		if len(c.uses[i]) > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(c.uses[a]), len(c.uses[b])) })
	for _, i := range order {
		c.occupy(taken, i, p.groups[i].current+given[i])
	}
	return taken
}

// occupy books pods of a group on its pools, one after the other. What is there and finds no place by this account bounds nobody further.
func (c *ceilings) occupy(taken []int64, i int, pods int64) {
	for _, use := range c.uses[i] {
		n := min(pods, max(c.capacity[use.class]-taken[use.class], 0)/use.units)
		taken[use.class] += n * use.units
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
		n += max(c.capacity[use.class]-taken[use.class], 0) / use.units
	}
	return max(min(n, c.most[i]-pods), 0)
}

// bindPools lowers the room of groups on a ledger to that of their pools, with the pods given on their way.
func (p *planning) bindPools(l *ledger, given []int64) {
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
func (p *planning) withinPools(proposal, given []int64) {
	if p.ceilings == nil {
		return
	}
	taken := p.occupied(given)
	for i := range proposal {
		hosts := p.groups[i].hosts
		n := min(proposal[i]-given[i], p.ceilings.room(taken, i, p.groups[i].current+given[i]))
		n -= n % hosts
		p.ceilings.occupy(taken, i, n)
		proposal[i] = given[i] + n
	}
}

// poolRoom is how many more pods of a group its pools hold.
func (p *planning) poolRoom(i int, given []int64) int64 {
	if p.ceilings == nil {
		return maxCount
	}
	return p.ceilings.room(p.occupied(given), i, p.groups[i].current+given[i])
}

// poolLimit says that a group's pools hold no more replicas of it.
func (p *planning) poolLimit(i int, given []int64) (Reason, bool) {
	if p.poolRoom(i, given) >= p.groups[i].hosts {
		return Reason{}, false
	}
	g := &p.groups[i]
	names := make([]string, len(g.Pools))
	for k, pool := range g.Pools {
		names[k] = cmp.Or(pool.Name, "of nodes without a name")
	}
	word := "pool "
	if len(names) > 1 {
		word = "pools "
	}
	return Reason{CodePoolCeiling, fmt.Sprintf("%s%s can hold no more pods of group %s, at most %d without others (%s)",
		word, strings.Join(names, ", "), g.Name, p.ceilings.most[i], p.having(i, given[i]))}, true
}
