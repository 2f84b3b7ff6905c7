package raydemand

// ClusterConfig is what a Ray cluster could have: the shape of a node of each node group, and how many there may be.
// Ray's libraries read it to learn of groups that have no node yet (docs/reference/facts.md#cluster-config).
type ClusterConfig struct {
	// Groups is empty while the shapes are not known. Ray's libraries treat that as no config at all.
	Groups []NodeGroup
}

// NodeGroup is the config of one node group: a worker group, or the head alone.
type NodeGroup struct {
	Name string
	// Resources is what one node announces, in Ray's units.
	Resources Bundle
	// Min and Max count Ray nodes, not replicas. Max is Unlimited where nothing bounds the group.
	Min, Max int
}

// Unlimited is the Max of a group without a maximum, as Ray writes it.
const Unlimited = -1
