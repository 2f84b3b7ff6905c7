package landing

import (
	"math"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// GroupPool is a pool of Kubernetes nodes that a group's pods can be scheduled on.
type GroupPool struct {
	Name string `json:"name"`
	// MaxPods is how many pods of the group the pool can ever hold, on present nodes and nodes that it may add; nil
	// means no limit.
	MaxPods *int64 `json:"maxPods"`
	// Resource is the Kubernetes name of what groups compete for on the pool's nodes, and Units is how much of it one
	// pod takes. Groups that use other resources of the same nodes, such as another MIG profile, do not compete for it.
	Resource string `json:"resource,omitempty"`
	Units    int64  `json:"units,omitempty"`
	// ProfileFixed: the pool's MIG profile was set when the pool was created and cannot change, as on AKS.
	ProfileFixed bool `json:"profileFixed,omitempty"`
	// Shares are all resources that a pod takes of the pool's nodes, if the pool's total is known.
	Shares []PoolShare `json:"shares,omitempty"`
	// Cards are the current cards of the nodes that hold pods of the group.
	Cards []sharing.CutCards `json:"cards,omitempty"`
}

// PoolShare is how much of a resource one pod takes, and how much the pool's present and possible nodes have of it: CPU
// in thousandths, memory in MiB, other resources as Kubernetes counts them.
type PoolShare struct {
	Resource string `json:"resource"`
	Units    int64  `json:"units"`
	Capacity int64  `json:"capacity"`
}

// declared turns the pools of groups, which say how many pods they hold and what groups share of them, into places:
// each pool is one of any size. A resource of a pool has the pool's name in it, because a pod may count differently in
// each pool. If a pool's total of a resource is unknown, it is as much as the group with the largest use of it could
// take.
type declared struct {
	byPool map[string]*Place
	names  []string
}

func newDeclared(groups []Tenant) *declared {
	d := &declared{byPool: map[string]*Place{}}
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

func (d *declared) place(pool string) *Place {
	if d.byPool[pool] == nil {
		d.byPool[pool] = &Place{Pool: pool, New: true, AnySize: true, Free: Quantities{}}
		d.names = append(d.names, pool)
	}
	return d.byPool[pool]
}

func (d *declared) places() []Place {
	places := make([]Place, len(d.names))
	for i, name := range d.names {
		places[i] = *d.byPool[name]
	}
	return places
}

// podOf returns what a pod of the group takes of its pools; false if they are unknown or do not limit it.
func (d *declared) podOf(g *Tenant) (Pod, bool) {
	pod := Pod{Name: g.Name, Requests: Quantities{}}
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
func (g *Tenant) bounded() bool {
	return g.Pod == nil && len(g.Pools) > 0 &&
		!slices.ContainsFunc(g.Pools, func(p GroupPool) bool { return p.MaxPods == nil })
}

// poolUse is how much of a pool's resource one pod takes, and how much of it there is.
type poolUse struct {
	units, capacity raydemand.Amount
}

func usesOf(g *Tenant, pool *GroupPool) map[string]poolUse {
	most, units := min(max(*pool.MaxPods, 0), Unbounded), min(max(pool.Units, 1), math.MaxInt32)
	uses := map[string]poolUse{
		inPool(pool.Name, podsOf(g.Name)): {1, raydemand.Amount(most)},
		inPool(pool.Name, pool.Resource):  {raydemand.Amount(units), raydemand.Amount(units).Times(most)},
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
