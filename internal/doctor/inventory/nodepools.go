package inventory

import (
	"cmp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// NodePools returns Karpenter's NodePools.
func (x *Inventory) NodePools() (list []*Object) {
	for _, o := range x.ByKind["NodePool"] {
		if strings.HasPrefix(o.Root().Text("apiVersion"), "karpenter.sh/") {
			list = append(list, o)
		}
	}
	return list
}

// NodePoolRefuses returns why no pod of a group, or head, can be on a node of a NodePool; empty if one could, or if the
// NodePool cannot be read.
func (c *Candidates) NodePoolRefuses(nodePool string, g Group) string {
	at := slices.IndexFunc(c.nodes.Rooms, func(r landing.Room) bool { return r.Pool == nodePool })
	if at < 0 {
		return ""
	}
	refusal := c.nodes.Rooms[at].Refusal(&g.Pods.Pod)
	for _, pool := range c.poolsOf(g.Pods) {
		if pool.Pool == nodePool && (pool.Holds > 0 || refusal == "") {
			return ""
		}
	}
	return cmp.Or(refusal, "the nodes of NodePool "+nodePool+" show that it adds none on which a pod fits")
}

// poolsOf returns how many pods of a group, or heads, each pool may hold that could hold one.
func (c *Candidates) poolsOf(pods *nodepool.WorkerGroup) []landing.Pods {
	list, known := c.pools[pods]
	if !known {
		list = c.nodes.Where(&pods.Pod).Pods
		c.pools[pods] = list
	}
	return list
}

// Tolerates reports whether pods of the group tolerate a taint.
func (g Group) Tolerates(taint sharing.Taint) bool {
	return g.Pods.Pod.Tolerates(&landing.Node{}, taint)
}
