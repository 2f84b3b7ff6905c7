package controller

import (
	"slices"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// clusterConfigOf returns what the cluster could have by its spec: the head, and each worker group within its bounds.
// It does not consider whether nodes are available at present: a group that fails now may not fail in a minute.
//
// Ray Train refuses to start workers that need more than the config adds up to, so an incomplete config would be worse
// than none. While the CPUs of a node of some group are unknown, the config is empty, and Ray's libraries ignore it.
func clusterConfigOf(cluster nodepool.Cluster, head *raydemand.Node, shapes observe.Shapes) raydemand.ClusterConfig {
	config := raydemand.ClusterConfig{}
	if head != nil {
		config.Groups = append(config.Groups,
			raydemand.NodeGroup{Name: head.Group, Resources: observe.OwnResources(head.Total), Min: 1, Max: 1})
	}
	for _, g := range cluster.Groups {
		if g.Broken || g.Suspended || g.Max <= 0 {
			continue // it gets no nodes
		}
		resources := observe.WithCertainType(shapes.Of(g), g.Announces)
		if _, counted := resources[raydemand.CPU]; !counted {
			return raydemand.ClusterConfig{}
		}
		config.Groups = append(config.Groups, raydemand.NodeGroup{
			Name: g.Name, Resources: resources, Min: nodesOf(g, g.Min), Max: nodesOf(g, g.Max),
		})
	}
	return config
}

// withAcceleratorTypes returns the config as Ray's libraries need it: the nodes of a worker group with GPUs may be of
// any accelerator type, unless their nodes or a worker show it. Types are added only to what is sent: they are many,
// and two configs compare without them.
func withAcceleratorTypes(config raydemand.ClusterConfig, head *raydemand.Node) raydemand.ClusterConfig {
	config.Groups = slices.Clone(config.Groups)
	workers := config.Groups
	if head != nil && len(workers) > 0 {
		workers = workers[1:] // the head names its own type
	}
	for i := range workers {
		workers[i].Resources = workers[i].Resources.WithAnyAcceleratorType()
	}
	return config
}

// nodesOf returns how many Ray nodes the replicas of a group have.
func nodesOf(g nodepool.WorkerGroup, replicas int) int {
	if replicas >= nodepool.NoMaximum {
		return raydemand.Unlimited
	}
	return replicas * max(g.NumOfHosts, 1)
}
