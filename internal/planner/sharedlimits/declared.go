package sharedlimits

import (
	"math"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// declared turns the pools of groups, which say how many pods they hold and what groups share of them, into places:
// each pool is one of any size. A resource of a pool has the pool's name in it, because a pod may count differently in
// each pool. If a pool's total of a resource is unknown, it is as much as the group with the largest use of it could
// take.
type declared struct {
	byPool map[string]*landing.Place
	names  []string
}

func newDeclared(groups []Group) *declared {
	d := &declared{byPool: map[string]*landing.Place{}}
	for i := range groups {
		if !groups[i].bounded() {
			continue
		}
		for k := range groups[i].Pools {
			pool := &groups[i].Pools[k]
			place := d.place(pool.Name)
			place.Accepts = append(place.Accepts, groups[i].Name)
			for name, use := range usesOf(&groups[i], pool) {
				place.Free[name] = max(place.Free[name], use.capacity)
			}
		}
	}
	return d
}

func (d *declared) place(pool string) *landing.Place {
	if d.byPool[pool] == nil {
		d.byPool[pool] = &landing.Place{Pool: pool, New: true, AnySize: true, Free: landing.Quantities{}}
		d.names = append(d.names, pool)
	}
	return d.byPool[pool]
}

func (d *declared) places() []landing.Place {
	places := make([]landing.Place, len(d.names))
	for i, name := range d.names {
		places[i] = *d.byPool[name]
	}
	return places
}

// podOf returns what a pod of the group takes of its pools; false if they are unknown or do not limit it.
func (d *declared) podOf(g *Group) (landing.Pod, bool) {
	pod := landing.Pod{Name: g.Name, Requests: landing.Quantities{}}
	if !g.bounded() {
		return pod, false
	}
	for k := range g.Pools {
		for name, use := range usesOf(g, &g.Pools[k]) {
			pod.Requests[name] = use.units
		}
	}
	return pod, true
}

// bounded reports whether all pools that the group can use have a limit, and nothing better is known.
func (g *Group) bounded() bool {
	return g.Pod == nil && len(g.Pools) > 0 &&
		!slices.ContainsFunc(g.Pools, func(p model.GroupPool) bool { return p.MaxPods == nil })
}

// poolUse is how much of a pool's resource one pod takes, and how much of it there is.
type poolUse struct {
	units, capacity raydemand.Amount
}

func usesOf(g *Group, pool *model.GroupPool) map[string]poolUse {
	most, units := min(max(*pool.MaxPods, 0), vector.MaxCount), min(max(pool.Units, 1), math.MaxInt32)
	uses := map[string]poolUse{
		inPool(pool.Name, podsOf(g.Name)): {1, raydemand.Amount(most)},
		inPool(pool.Name, pool.Resource):  {raydemand.Amount(units), raydemand.Amount(vector.TimesAtMost(most, units))},
	}
	for _, share := range pool.Shares {
		uses[inPool(pool.Name, share.Resource)] = poolUse{raydemand.Amount(max(share.Units, 1)),
			raydemand.Amount(share.Capacity)}
	}
	return uses
}

// inPool is the name of a pool's own resource.
func inPool(pool, resource string) string { return resource + " of pool " + pool }

func podsOf(group string) string { return "pods of group " + group }
