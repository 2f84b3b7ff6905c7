package landing

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// spotLabels mark nodes that the cloud can reclaim, by the documentation of AKS, EKS, Karpenter and GKE. Values are
// compared without regard to case.
var spotLabels = map[string]string{
	"kubernetes.azure.com/scalesetpriority": "spot", "eks.amazonaws.com/capacityType": "spot",
	"karpenter.sh/capacity-type": "spot", "cloud.google.com/gke-spot": "true",
}

// Spot reports whether the labels of a node say that the cloud can reclaim it.
func Spot(labels map[string]string) bool {
	for key, value := range spotLabels {
		if strings.EqualFold(labels[key], value) {
			return true
		}
	}
	return false
}

// Pool summarizes the nodes with one pool name. A value that differs between nodes is unknown.
type Pool struct {
	Name string `json:"name"`
	// Provider is aks, ack, eks, gke, karpenter, oke, or configured.
	Provider string `json:"provider"`
	Nodes    int    `json:"nodes"`
	// Schedulable is the number of nodes that are not cordoned.
	Schedulable int     `json:"schedulable"`
	Product     *string `json:"product"`
	// Cards and Units are sums; nil if the value of one node is unknown.
	Cards     *int64            `json:"cards"`
	Kind      gpuinfo.Kind      `json:"kind"`
	Units     map[string]int64  `json:"units"`
	Isolation gpuinfo.Isolation `json:"isolation"`
	// Spot: the cloud can reclaim at least one node.
	Spot bool `json:"spot"`
	// Zones and InstanceTypes are all values that occur. Taints are those on every node: a pod must tolerate them to
	// run on an added node.
	Zones         []string `json:"zones"`
	InstanceTypes []string `json:"instanceTypes"`
	Taints        []string `json:"taints"`
	// Free is the total that no pod requests, by resource; nil if it is unknown for one node.
	Free map[string]int64 `json:"free"`
	// Price is the configured price of one node per hour. Ceiling is how far the pool may grow; nil if unknown.
	Price   *float64 `json:"price"`
	Ceiling *Ceiling `json:"ceiling"`
	// Shape describes a new node, if one is declared.
	Shape *sharing.GPUs `json:"shape"`
	// Problems is the number of problems on all nodes.
	Problems int `json:"problems"`
}

func poolOfNodes(g sharing.Reader, name, provider string, nodes []sharing.NodeObject) Pool {
	pool := Pool{Name: name, Provider: provider, Nodes: len(nodes)}
	zones, types, taints := map[string]bool{}, map[string]bool{}, map[string]int{}
	for i, node := range nodes {
		read := g.Read(node)
		if i == 0 {
			pool.Product, pool.Cards, pool.Kind, pool.Isolation = read.Product, read.Cards, read.Kind, read.Isolation
			pool.Units, pool.Free = maps.Clone(read.Units), maps.Clone(read.Free)
		} else {
			pool.add(read)
		}
		pool.Problems += len(read.Problems)
		pool.Spot = pool.Spot || Spot(node.Labels)
		if !node.Unschedulable {
			pool.Schedulable++
		}
		zones[cmp.Or(node.Labels["topology.kubernetes.io/zone"],
			node.Labels["failure-domain.beta.kubernetes.io/zone"])] = true
		types[cmp.Or(node.Labels["node.kubernetes.io/instance-type"],
			node.Labels["beta.kubernetes.io/instance-type"])] = true
		for _, taint := range node.Taints {
			if taint.Key != cordonTaint.Key {
				taints[taint.String()]++
			}
		}
	}
	maps.DeleteFunc(taints, func(_ string, n int) bool { return n < len(nodes) })
	pool.Zones, pool.InstanceTypes, pool.Taints = listed(zones), listed(types), listed(taints)
	return pool
}

// add joins another node: it adds up values that are known for both, and keeps values that are equal.
func (p *Pool) add(node sharing.GPUs) {
	p.Product = same(p.Product, node.Product)
	if p.Kind != node.Kind {
		p.Kind = gpuinfo.UnknownKind
	}
	if p.Isolation != node.Isolation {
		p.Isolation = gpuinfo.UnknownIsolation
	}
	p.Cards = sumOfBoth(p.Cards, node.Cards)
	p.Units, p.Free = added(p.Units, node.Units), added(p.Free, node.Free)
}

// added adds up by name; nil if one side is unknown.
func added(sums, more map[string]int64) map[string]int64 {
	if sums == nil || more == nil {
		return nil
	}
	for name, n := range more {
		sums[name] += n
	}
	return sums
}

func listed[V any](set map[string]V) []string {
	delete(set, "")
	return append([]string{}, slices.Sorted(maps.Keys(set))...)
}

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
		p.Shape = new(g.Read(*spec.Shape))
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
