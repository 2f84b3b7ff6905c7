package model

import (
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
			pool.MaxPods = &most
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
