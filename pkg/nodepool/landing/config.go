package landing

import (
	"maps"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// MaxPrice bounds every price per hour, of a node or of a pod. A higher price is a mistake; below it, sums of prices
// are exact enough to compare.
const MaxPrice = 1e9

// Config is the user's configuration of pools: nodes do not show prices, and a pool without nodes shows nothing.
type Config struct {
	Pools []Spec
	// Complete says that these pools and those of existing nodes are all that there are: no other pool can get a node.
	Complete bool
	// InstancePrices are prices per hour of a node, by instance type, for pools without a price of their own.
	InstancePrices map[string]float64
}

// Spec is the configuration of one pool. Unset fields are nil.
type Spec struct {
	Name               string
	MinNodes, MaxNodes *int64
	// Price is the price of one node per hour, in the currency of all other prices.
	Price *float64
	Spot  *bool
	// Shape describes a new node of the pool. Its Declared is set, and its name is the pool's.
	Shape *sharing.NodeObject
	// Allocatable has all resources of Shape, including cpu and memory.
	Allocatable Quantities
}

// ceiling returns the configured bounds on the pool's size; they take precedence over what was read from the cluster.
func (s Spec) ceiling() (Ceiling, bool) {
	return Ceiling{Group: s.Name, MinNodes: s.MinNodes, MaxNodes: s.MaxNodes,
		Source: "configuration"}, s.MinNodes != nil || s.MaxNodes != nil
}

// node returns the declared shape as a Node; false if none is declared.
func (s Spec) node(reader sharing.Reader) (Node, bool) {
	if s.Shape == nil {
		return Node{}, false
	}
	read := reader.Read(*s.Shape)
	labels := s.Shape.Labels
	if _, set := labels[reader.PoolLabel]; reader.PoolLabel != "" && !set {
		labels = maps.Clone(labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[reader.PoolLabel] = s.Name
	}
	return Node{
		Name: s.Name, Declared: true, Ready: true, Labels: labels, Taints: s.Shape.Taints,
		Allocatable: s.Allocatable, GPUs: &read,
	}, true
}

// Shapes returns the declared shapes of all pools, to append to the nodes for placing pods.
func (c Config) Shapes(reader sharing.Reader) []Node {
	var nodes []Node
	for _, spec := range c.Pools {
		if node, declared := spec.node(reader); declared {
			nodes = append(nodes, node)
		}
	}
	return nodes
}
