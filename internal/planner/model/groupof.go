package model

import (
	"maps"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// nodeGroupLabel is the label with the group's name that every Ray node carries, so selectors can use it
// (docs/reference/facts.md#node-group-label).
const nodeGroupLabel = "ray.io/node-group"

// SnapshotOf returns what a RayCluster contributes to a snapshot: its settings and its groups, without nodes and
// demand. Live snapshots and `autoscaler plan` with a RayCluster share it, so both give the same plan. Of groups with
// equal names, it keeps only the first, which is broken. It leaves out groups without a name, because no pod can belong
// to them.
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
		Places:                    cluster.Places,
	}
	s.Promised = slices.Grow(s.Promised, len(cluster.Promised))
	for _, p := range cluster.Promised {
		name := p.Name
		if p.RayCluster == cluster.Key {
			name += " itself, " + p.Group
		}
		s.Promised = append(s.Promised, landing.Promise{RayCluster: name, Pods: p.Pods, Pod: p.Pod})
	}
	if q := cluster.Queue.Quota; q != nil {
		s.Quotas = q.Bounds
	}
	s.Quotas = slices.Concat(s.Quotas, cluster.NamespaceQuotas)
	if quota, holds := cluster.GiveBack.Quota(); holds {
		s.Quotas = append(slices.Clip(s.Quotas), quota)
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

// groupOf converts a worker group. Its replicas are those that the operator maintains: pods for a minimum above
// spec.replicas are on their way without a launch.
func groupOf(g nodepool.WorkerGroup) Group {
	replicas := g.Goal()
	group := Group{
		Name: g.Name, Resources: g.Resources.Clone(), Labels: map[string]string{}, Min: g.Min, Max: g.Max,
		Replicas: &replicas, NumOfHosts: max(g.NumOfHosts, 1), Priority: g.Priority, Price: g.Price,
		Slice: SliceOf(g, g.Resources[raydemand.GPU]), Pools: poolsOf(g),
		Announces: g.Announces,
		NodeFit:   fitOf(g),
		Pod:       g.Kind, Bound: g.Bound, ScaleGates: g.ScaleGates,
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
