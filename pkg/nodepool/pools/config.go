package pools

import (
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// MaxPrice bounds every price per hour, of a node or of a pod. A higher one is a mistake, and below it sums of prices
// stay exact enough to compare.
const MaxPrice = 1e9

// Config is what somebody configured about pools: nodes do not tell prices, and a pool without nodes tells nothing.
type Config struct {
	Pools []Spec
	// InstancePrices is what a node of an instance type costs an hour, for pools without a price of their own.
	InstancePrices map[string]float64
}

// Spec is what is configured about one pool. What is not said is nil.
type Spec struct {
	Name               string
	MinNodes, MaxNodes *int64
	// Price is what one node costs an hour, in the currency of all other prices.
	Price *float64
	Spot  *bool
	// Shape is what a new node of the pool would be; its Declared is set and its name is the pool's.
	Shape *nodegpu.NodeObject
	// Allocatable are all resources of Shape, cpu and memory too.
	Allocatable podfit.Quantities
}

// ceiling is what the configuration says about the pool's size; it goes before what was read.
func (s Spec) ceiling() (Ceiling, bool) {
	return Ceiling{Group: s.Name, MinNodes: s.MinNodes, MaxNodes: s.MaxNodes,
		Source: "configuration"}, s.MinNodes != nil || s.MaxNodes != nil
}

// Node is the declared shape in the form in which pods land on it; false where none is declared.
func (s Spec) Node(reader nodegpu.Reader) (podfit.Node, bool) {
	if s.Shape == nil {
		return podfit.Node{}, false
	}
	read := reader.Read(*s.Shape)
	return podfit.Node{
		Name: s.Name, Declared: true, Ready: true, Labels: s.Shape.Labels, Taints: s.Shape.Taints, Allocatable: s.Allocatable, GPUs: &read,
	}, true
}

// Shapes are the declared shapes of all pools, to be appended to the nodes among which pods land.
func (c Config) Shapes(reader nodegpu.Reader) []podfit.Node {
	var nodes []podfit.Node
	for _, spec := range c.Pools {
		if node, declared := spec.Node(reader); declared {
			nodes = append(nodes, node)
		}
	}
	return nodes
}
