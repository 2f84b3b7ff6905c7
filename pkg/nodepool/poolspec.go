package nodepool

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// PoolsConfig is what somebody configured about pools: nodes do not tell prices, and a pool without nodes tells nothing.
type PoolsConfig struct {
	Pools []PoolSpec
	// InstancePrices is what a node of an instance type costs an hour, for pools without a price of their own.
	InstancePrices map[string]float64
}

// PoolSpec is what is configured about one pool. What is not said is nil.
type PoolSpec struct {
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
func (s PoolSpec) ceiling() (Ceiling, bool) {
	return Ceiling{Group: s.Name, MinNodes: s.MinNodes, MaxNodes: s.MaxNodes, Source: "configuration"}, s.MinNodes != nil || s.MaxNodes != nil
}

// Node is the declared shape in the form in which pods land on it; false where none is declared.
func (s PoolSpec) Node(reader nodegpu.Reader) (podfit.Node, bool) {
	if s.Shape == nil {
		return podfit.Node{}, false
	}
	read := reader.Read(*s.Shape)
	return podfit.Node{
		Name: s.Name, Declared: true, Ready: true, Labels: s.Shape.Labels, Taints: s.Shape.Taints, Allocatable: s.Allocatable, GPUs: &read,
	}, true
}

// Shapes are the declared shapes of all pools, to be appended to the nodes among which pods land.
func (c PoolsConfig) Shapes(reader nodegpu.Reader) []podfit.Node {
	var nodes []podfit.Node
	for _, spec := range c.Pools {
		if node, declared := spec.Node(reader); declared {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// PoolsWith are the pools of the nodes and those of the configuration, with what the configuration and the pools' own autoscalers say about
// them.
func PoolsWith(g nodegpu.Reader, nodes []nodegpu.NodeObject, config PoolsConfig, ceilings []Ceiling) []GPUPool {
	pools := Pools(g, nodes)
	for _, spec := range config.Pools {
		if !slices.ContainsFunc(pools, func(p GPUPool) bool { return p.Name == spec.Name }) {
			pools = append(pools, emptyPool(g, spec))
		}
	}
	for _, ceiling := range ceilings {
		if ceiling.Source == FromKarpenter && !slices.ContainsFunc(pools, func(p GPUPool) bool { return p.Name == ceiling.Group }) {
			pools = append(pools, emptyNodePool(g, ceiling))
		}
	}
	slices.SortStableFunc(pools, func(a, b GPUPool) int { return strings.Compare(a.Name, b.Name) })
	names := make([]string, len(pools))
	for i, pool := range pools {
		names[i] = pool.Name
	}
	found := CeilingsOf(names, ceilings)
	for i := range pools {
		pool := &pools[i]
		if ceiling, known := found[pool.Name]; known {
			pool.Ceiling = &ceiling
		}
		if types := pool.InstanceTypes; len(types) == 1 {
			if price, known := config.InstancePrices[types[0]]; known {
				pool.Price = &price
			}
		}
		for _, spec := range config.Pools {
			if spec.Name == pool.Name {
				pool.configure(g, spec)
			}
		}
	}
	return pools
}

// emptyPool is a pool without nodes, known by its declared shape if by anything.
func emptyPool(g nodegpu.Reader, spec PoolSpec) GPUPool {
	none := int64(0)
	pool := GPUPool{
		Name: spec.Name, Provider: "configured", Cards: &none, Kind: gpuinfo.UnknownKind, Isolation: gpuinfo.UnknownIsolation,
		Units: map[string]int64{}, Free: map[string]int64{}, Zones: []string{}, InstanceTypes: []string{}, Taints: []string{},
	}
	if spec.Shape != nil {
		one := poolOfNodes(g, spec.Name, "configured", []nodegpu.NodeObject{*spec.Shape})
		pool.Product, pool.Kind, pool.Isolation, pool.Spot = one.Product, one.Kind, one.Isolation, one.Spot
		pool.Zones, pool.InstanceTypes, pool.Taints = one.Zones, one.InstanceTypes, one.Taints
	}
	return pool
}

func (p *GPUPool) configure(g nodegpu.Reader, spec PoolSpec) {
	if ceiling, said := spec.ceiling(); said {
		if p.Ceiling != nil {
			ceiling.Limits = p.Ceiling.Limits
		}
		p.Ceiling = &ceiling
	}
	if spec.Price != nil {
		p.Price = spec.Price
	}
	if spec.Spot != nil {
		p.Spot = *spec.Spot
	}
	if spec.Shape != nil {
		shape := g.Read(*spec.Shape)
		p.Shape = &shape
	}
}
