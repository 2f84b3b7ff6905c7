package landing

import (
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// All returns the pools of the nodes and those of the configuration, with what the configuration and the pools'
// autoscalers say about them.
func All(g sharing.Reader, nodes []sharing.NodeObject, config Config, ceilings []Ceiling) []Pool {
	pools := Observed(g, nodes)
	for _, spec := range config.Pools {
		if !slices.ContainsFunc(pools, func(p Pool) bool { return p.Name == spec.Name }) {
			pools = append(pools, emptyPool(g, spec))
		}
	}
	for _, ceiling := range ceilings {
		if ceiling.Source == FromKarpenter &&
			!slices.ContainsFunc(pools, func(p Pool) bool { return p.Name == ceiling.Group }) {
			pools = append(pools, emptyNodePool(g, ceiling))
		}
	}
	slices.SortStableFunc(pools, func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
	names := make([]string, len(pools))
	for i, pool := range pools {
		names[i] = pool.Name
	}
	found := ceilingsOf(names, ceilings)
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

// emptyPool returns a pool without nodes, described by its declared shape if it has one.
func emptyPool(g sharing.Reader, spec Spec) Pool {
	none := int64(0)
	pool := Pool{
		Name: spec.Name, Provider: "configured", Cards: &none,
		Kind: gpuinfo.UnknownKind, Isolation: gpuinfo.UnknownIsolation,
		Units: map[string]int64{}, Free: map[string]int64{},
		Zones: []string{}, InstanceTypes: []string{}, Taints: []string{},
	}
	if spec.Shape != nil {
		one := poolOfNodes(g, spec.Name, "configured", []sharing.NodeObject{*spec.Shape})
		pool.Product, pool.Kind, pool.Isolation, pool.Spot = one.Product, one.Kind, one.Isolation, one.Spot
		pool.Zones, pool.InstanceTypes, pool.Taints = one.Zones, one.InstanceTypes, one.Taints
	}
	return pool
}

func (p *Pool) configure(g sharing.Reader, spec Spec) {
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

// emptyNodePool returns a Karpenter NodePool without nodes, described by its template.
func emptyNodePool(g sharing.Reader, ceiling Ceiling) Pool {
	pool := emptyPool(g, Spec{Name: ceiling.Group})
	pool.Provider = FromKarpenter
	if ceiling.Template == nil {
		return pool
	}
	for _, taint := range ceiling.Template.Taints {
		pool.Taints = append(pool.Taints, taint.String())
	}
	for _, requirement := range ceiling.Template.Requirements {
		if requirement.Key == "node.kubernetes.io/instance-type" && requirement.Operator == "In" {
			pool.InstanceTypes = append(pool.InstanceTypes, requirement.Values...)
		}
	}
	return pool
}

// Observed groups nodes by pool, sorted by name. Nodes without a pool are left out. If two providers use the same name,
// the result has two pools.
func Observed(g sharing.Reader, nodes []sharing.NodeObject) []Pool {
	type key struct{ name, provider string }
	members := map[key][]sharing.NodeObject{}
	for _, node := range nodes {
		if name, provider, ok := g.PoolAndProvider(node); ok {
			members[key{name, provider}] = append(members[key{name, provider}], node)
		}
	}
	pools := make([]Pool, 0, len(members))
	for k, nodes := range members {
		pools = append(pools, poolOfNodes(g, k.name, k.provider, nodes))
	}
	slices.SortFunc(pools, func(a, b Pool) int {
		return strings.Compare(a.Name+"\x00"+a.Provider, b.Name+"\x00"+b.Provider)
	})
	return pools
}
