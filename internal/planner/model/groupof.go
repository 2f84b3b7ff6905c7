package model

import (
	"maps"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// nodeGroupLabel is the label that every Ray node carries with its group's name, so a selector may ask for it
// (docs/reference/facts.md#node-group-label).
const nodeGroupLabel = "ray.io/node-group"

// SnapshotOf is what a RayCluster alone says of a snapshot: its settings and its groups, not who runs and what is asked
// for. Live snapshots and `autoscaler plan` with a RayCluster share it, so both plan the same. Of groups with equal
// names only the first is in it, which is broken, and one without a name is not: no pod can be called its own.
func SnapshotOf(cluster nodepool.Cluster) Snapshot {
	idle := cluster.IdleTimeout.Seconds()
	s := Snapshot{
		Name: cluster.Key.String(), UpscalingMode: cluster.UpscalingMode, IdleTimeoutSeconds: &idle,
		// Ray does not compare launch configurations on KubeRay: the operator decides what an edited group restarts.
		LaunchConfigCheckDisabled: true,
		Groups:                    []Group{},
		Nodes:                     []Node{},
		KeptResources:             cluster.RequestResources,
		Isolation:                 cluster.Isolation,
	}
	named := map[string]bool{"": true}
	for _, g := range cluster.Groups {
		if named[g.Name] {
			continue
		}
		named[g.Name] = true
		group := groupOf(g)
		if cluster.Suspended {
			group.Closed = "the RayCluster is suspended"
		}
		s.Groups = append(s.Groups, group)
	}
	return s
}

// groupOf reads a worker group. Its replicas are those that the operator keeps: a minimum above spec.replicas is on its
// way without anybody launching it.
func groupOf(g nodepool.WorkerGroup) Group {
	replicas := g.Goal()
	group := Group{
		Name: g.Name, Resources: g.Resources.Clone(), Labels: map[string]string{}, Min: g.Min, Max: g.Max,
		Replicas: &replicas, NumOfHosts: max(g.NumOfHosts, 1), Priority: g.Priority, Price: g.Price,
		Slice: SliceOf(g, g.Resources[raydemand.GPU]), Pools: poolsOf(g),
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
