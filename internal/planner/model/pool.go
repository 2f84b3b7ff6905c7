package model

import (
	"maps"
	"math"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
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

// poolsOf returns the pools of a group, if all of them are known.
func poolsOf(g nodepool.WorkerGroup) []GroupPool {
	resource, units := contended(g)
	_, named := g.Pod.Selector["kubernetes.azure.com/agentpool"]
	var pools []GroupPool
	for _, pods := range g.PoolPods {
		pool := GroupPool{
			Name:         pods.Pool,
			Resource:     resource,
			Units:        units,
			ProfileFixed: named || pods.ProfileFixed,
			Cards:        pods.Cards,
		}
		if most, bounded := pods.Most(); bounded {
			pool.MaxPods, pool.Shares = &most, sharesOf(g.Pod.Requests, pods.Has)
		}
		pools = append(pools, pool)
	}
	return pools
}

// contended returns the contended resource that a pod takes of a node: its devices, else its CPU in thousandths.
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

// sharesOf rounds a pod's amounts down and the pool's amounts up, so that rounding never removes room.
func sharesOf(takes, has landing.Quantities) []PoolShare {
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
