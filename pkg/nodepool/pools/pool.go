// Package pools says what pools of nodes are, how far each may grow, and how many pods of a shape it could hold. A Pool
// is what its nodes show, a Ceiling is what its node autoscaler or the configuration allows, a Room is what it may
// still add, and Pods is that room in pods of one shape. A NodeClaim on its way counts with the pods that it has room
// for.
//
// The package must not know clusters or worker groups, decide what to launch, or read anything: package kube/watch
// reads Karpenter's and the Cluster Autoscaler's objects.
package pools

import (
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// spotLabels mark nodes that the cloud can take back; the values are compared without regard to case.
var spotLabels = []struct{ key, value, source string }{
	{"kubernetes.azure.com/scalesetpriority", "spot", "AKS documentation"},
	{"eks.amazonaws.com/capacityType", "spot", "EKS documentation"},
	{"karpenter.sh/capacity-type", "spot", "Karpenter"},
	{"cloud.google.com/gke-spot", "true", "GKE documentation"},
}

func isSpot(node nodegpu.NodeObject) bool {
	for _, row := range spotLabels {
		if strings.EqualFold(node.Labels[row.key], row.value) {
			return true
		}
	}
	return false
}

// Pool is what is understood of the nodes with one pool name. What not all of them agree on is unknown.
type Pool struct {
	Name string `json:"name"`
	// Provider is aks, ack, eks, gke, karpenter, oke, or configured.
	Provider string `json:"provider"`
	Nodes    int    `json:"nodes"`
	// Schedulable are those that are not cordoned.
	Schedulable int     `json:"schedulable"`
	Product     *string `json:"product"`
	// Cards and Units are sums; nil when one node's are not known.
	Cards     *int64            `json:"cards"`
	Kind      gpuinfo.Kind      `json:"kind"`
	Units     map[string]int64  `json:"units"`
	Isolation gpuinfo.Isolation `json:"isolation"`
	// Spot: at least one node can be taken back by the cloud.
	Spot bool `json:"spot"`
	// Zones and InstanceTypes are all that occur, Taints those that every node has: what a pod must tolerate to land on
	// one that is added.
	Zones         []string `json:"zones"`
	InstanceTypes []string `json:"instanceTypes"`
	Taints        []string `json:"taints"`
	// Free is the sum of what no pod asks for, by resource; nil when that is not known of one node.
	Free map[string]int64 `json:"free"`
	// Price is what one node costs an hour, where that is configured. Ceiling is how far the pool may grow; nil where
	// nothing is known.
	Price   *float64 `json:"price"`
	Ceiling *Ceiling `json:"ceiling"`
	// NodeClaims are those of Karpenter's whose nodes are on their way; nil where that is not known, or the pool is not
	// Karpenter's.
	NodeClaims *ClaimCount `json:"nodeClaims"`
	// Shape is what a new node would be, where that is declared.
	Shape *nodegpu.GPUs `json:"shape"`
	// Problems is the number of problems of all nodes.
	Problems int `json:"problems"`
}

func poolOfNodes(g nodegpu.Reader, name, provider string, nodes []nodegpu.NodeObject) Pool {
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
		pool.Spot = pool.Spot || isSpot(node)
		if !node.Unschedulable {
			pool.Schedulable++
		}
		zones[firstLabel(node, "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")] = true
		types[firstLabel(node, "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")] = true
		for _, taint := range node.Taints {
			if taint.Key != podfit.CordonTaint.Key {
				taints[taint.String()]++
			}
		}
	}
	maps.DeleteFunc(taints, func(_ string, n int) bool { return n < len(nodes) })
	pool.Zones, pool.InstanceTypes, pool.Taints = listed(zones), listed(types), listed(taints)
	return pool
}

// add joins another node: sums where both are known, and what is the same.
func (p *Pool) add(node nodegpu.GPUs) {
	if p.Product != nil && (node.Product == nil || *node.Product != *p.Product) {
		p.Product = nil
	}
	if p.Kind != node.Kind {
		p.Kind = gpuinfo.UnknownKind
	}
	if p.Isolation != node.Isolation {
		p.Isolation = gpuinfo.UnknownIsolation
	}
	switch {
	case p.Cards == nil || node.Cards == nil:
		p.Cards = nil
	default:
		sum := *p.Cards + *node.Cards
		p.Cards = &sum
	}
	p.Units, p.Free = added(p.Units, node.Units), added(p.Free, node.Free)
}

// added adds up by name; nil where one side is not known.
func added(sums, more map[string]int64) map[string]int64 {
	if sums == nil || more == nil {
		return nil
	}
	for name, n := range more {
		sums[name] += n
	}
	return sums
}

func firstLabel(node nodegpu.NodeObject, keys ...string) string {
	for _, key := range keys {
		if value := node.Labels[key]; value != "" {
			return value
		}
	}
	return ""
}

func listed[V any](set map[string]V) []string {
	names := make([]string, 0, len(set))
	for name := range set {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
