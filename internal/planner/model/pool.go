package model

import (
	"maps"
	"math"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// GroupPool is a pool of Kubernetes nodes that a group's pods can land on.
type GroupPool struct {
	Name string `json:"name"`
	// MaxPods is how many pods of the group it can ever have, on nodes that are there and nodes that it may add; nil:
	// nothing bounds it.
	MaxPods *int64 `json:"maxPods"`
	// Resource is what groups compete for on the pool's nodes, by Kubernetes' name, and Units how much of it one pod
	// takes. Groups that take other resources of the same nodes, another MIG profile for example, leave this one alone.
	Resource string `json:"resource,omitempty"`
	Units    int64  `json:"units,omitempty"`
	// ProfileFixed: the MIG profile of the pool was chosen when it was made and cannot be changed, as on AKS.
	ProfileFixed bool `json:"profileFixed,omitempty"`
	// Shares are all that a pod takes of the pool's nodes, of which the pool's whole is known.
	Shares []PoolShare `json:"shares,omitempty"`
	// Cards are those of the nodes that hold pods of the group, as they are cut now.
	Cards []nodegpu.CutCards `json:"cards,omitempty"`
}

// PoolShare is what one pod takes of a resource of a pool, and what all nodes that are there and may be added have of
// it: CPU in thousandths, memory in MiB, all else as Kubernetes counts it.
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
func sharesOf(takes, has podfit.Quantities) []PoolShare {
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
