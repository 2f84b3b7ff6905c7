package model

import (
	"maps"
	"math"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// poolsOf returns the pools of a group, if all of them are known.
func poolsOf(g nodepool.WorkerGroup) []landing.GroupPool {
	resource, units := contended(g)
	var pools []landing.GroupPool
	for _, pods := range g.PoolPods {
		pool := landing.GroupPool{
			Name:     pods.Pool,
			Resource: resource,
			Units:    units,
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
func sharesOf(takes, has landing.Quantities) []landing.PoolShare {
	var shares []landing.PoolShare
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
			shares = append(shares, landing.PoolShare{
				Resource: name, Units: units, Capacity: (int64(has[name]) + int64(unit) - 1) / int64(unit),
			})
		}
	}
	return shares
}
