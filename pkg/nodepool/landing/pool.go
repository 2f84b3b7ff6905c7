// Package landing says where pods can run, on nodes and in pools, and how many. Its words, for a reader who starts here:
//
//   - PodShape: what a pod requests, and what it demands of its node.
//   - Node: what a node has for pods, and what pods take of it (Use).
//   - Room: a pool, with what its autoscaler may still add (Ceiling, Config, NodeTemplate). Pools is all of them.
//   - Nodes: the model, all nodes and pools; equal nodes are one. It answers for a PodShape with an Answer, and for the
//     groups of a RayCluster with Places.
//   - Answer: where a shape fits (Fit), how many pods each pool holds (Pods), and what is proven (Verdict). What
//     cannot be proven is Trying.
//   - Place: nodes with the same left, for a list of Pods with their CardRequests and constraints.
//   - Taken: what has been placed on places, with the Room left for more and why there is no more (Shortage).
//   - Slice: what the GPUs of a pod are where it lands.
//   - NodeClaim: a node on its way. Incoming is the places that it offers to waiting pods.
//   - Announced: what Ray will know of a pod that does not exist yet, by the nodes where it can land.
//
// The rules are those of the scheduler's filters, and of the schedulers that hand out parts of cards. The package must
// not know clusters or worker groups, or decide which pods are worth placing, and it must not use the network, files or
// clocks.
package landing

import (
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// spotLabels mark nodes that the cloud can reclaim. Values are compared without regard to case.
var spotLabels = []struct{ key, value, source string }{
	{"kubernetes.azure.com/scalesetpriority", "spot", "AKS documentation"},
	{"eks.amazonaws.com/capacityType", "spot", "EKS documentation"},
	{"karpenter.sh/capacity-type", "spot", "Karpenter"},
	{"cloud.google.com/gke-spot", "true", "GKE documentation"},
}

// Spot reports whether the labels of a node say that the cloud can reclaim it.
func Spot(labels map[string]string) bool {
	for _, row := range spotLabels {
		if strings.EqualFold(labels[row.key], row.value) {
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
	// NodeClaims counts Karpenter's NodeClaims whose nodes are on their way; nil if unknown or if the pool is not
	// Karpenter's.
	NodeClaims *ClaimCount `json:"nodeClaims"`
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
		zones[firstLabel(node, "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")] = true
		types[firstLabel(node, "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")] = true
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

func firstLabel(node sharing.NodeObject, keys ...string) string {
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
