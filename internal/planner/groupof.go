package planner

import (
	"maps"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// nodeGroupLabel is the label that every Ray node carries with its group's name, so a selector may ask for it
// (reference/ray-gcs-wire.md 0a).
const nodeGroupLabel = "ray.io/node-group"

// GroupOf is a worker group as the planner sees it. Live snapshots and `autoscaler plan` with a RayCluster share it,
// so both plan the same.
func GroupOf(g nodepool.WorkerGroup) Group {
	replicas := g.Replicas
	group := Group{
		Name: g.Name, Resources: g.Resources.Clone(), Labels: map[string]string{}, Min: g.Min, Max: g.Max,
		Replicas: &replicas, NumOfHosts: max(g.NumOfHosts, 1), Priority: g.Priority,
	}
	maps.Copy(group.Labels, g.Labels)
	group.Labels[nodeGroupLabel] = g.Name
	if g.IdleTimeout != nil {
		seconds := g.IdleTimeout.Seconds()
		group.IdleTimeoutSeconds = &seconds
	}
	switch {
	case g.Suspended:
		group.Closed = "the group is suspended"
	case g.Broken:
		group.Closed = "the group cannot be planned; see findings"
	}
	return group
}
