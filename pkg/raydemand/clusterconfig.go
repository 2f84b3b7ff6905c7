package raydemand

// ClusterConfig describes what a Ray cluster can have: the shape of a node of each node group, and how many such nodes
// there can be. Ray's libraries read it to learn about groups that have no node yet
// (docs/reference/facts.md#cluster-config).
type ClusterConfig struct {
	// Groups is empty while the shapes are unknown. Ray's libraries treat an empty list as no config.
	Groups []NodeGroup
}

// NodeGroup is the config of one node group, which is a worker group or the head alone.
type NodeGroup struct {
	Name string
	// Resources are those of one node, in Ray's units.
	Resources Bundle
	// Min and Max count Ray nodes, not replicas. Max is Unlimited if the group has no maximum.
	Min, Max int
}

// Unlimited is the Max of a group without a maximum, as Ray writes it.
const Unlimited = -1
