package doctor

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// placeGroups prepares to find the nodes on which pods could run.
func (x *inventory) placeGroups() {
	x.ofGroup, x.pools = map[*nodepool.WorkerGroup][]landing.Node{}, map[*nodepool.WorkerGroup][]landing.PoolPods{}
	x.blocking = map[*nodepool.WorkerGroup]blockingTaints{}
	nodes := make([]landing.Node, len(x.Nodes))
	for i, n := range x.Nodes {
		nodes[i] = n.Node.Fit
	}
	shapes := x.Input.Pools.Shapes(x.Input.Reader)
	for i := range shapes {
		shapes[i].Open = x.Input.Open
	}
	rooms := landing.Rooms(nodes, x.Input.Pools, ceilings(x.Input.Ceilings, x.ByKind["Deployment"]))
	x.stock = landing.NodesOf(nodes, landing.Pools{Rooms: rooms, Shapes: shapes, Complete: x.Input.Pools.Complete,
		PoolLabel: x.Input.Reader.PoolLabel})
	x.anyNode = len(nodes)+len(shapes) > 0
}

// noNode returns what plans say about a group for whose pods there is no known node, as nodepool.WorkerGroup.NoNode.
// Without any node, only what the configuration of pools proves counts.
func (x *inventory) noNode(g rayGroup) (raydemand.Finding, bool) {
	workers := *g.Workers
	if !x.anyNode {
		return workers.JudgeUnseen(x.stock)
	}
	workers.Judge(x.stock.Where(&workers.Pod), x.Input.Reader.At)
	return workers.NoNode()
}

// ceilings returns the ceilings that were read. Without the Cluster Autoscaler's status it adds those in the arguments
// --nodes=min:max:name of its Deployment.
func ceilings(read []landing.Ceiling, deployments []*Object) []landing.Ceiling {
	if slices.ContainsFunc(read, func(c landing.Ceiling) bool { return c.Source == landing.FromClusterAutoscaler }) {
		return read
	}
	all := slices.Clone(read)
	for _, o := range deployments {
		for _, word := range o.arguments("cluster-autoscaler") {
			spec, isNodes := strings.CutPrefix(word, "--nodes=")
			parts := strings.SplitN(spec, ":", 3)
			if !isNodes || len(parts) != 3 {
				continue
			}
			least, errLeast := strconv.ParseInt(parts[0], 10, 64)
			most, errMost := strconv.ParseInt(parts[1], 10, 64)
			if errLeast == nil && errMost == nil {
				all = append(all, landing.Ceiling{
					Group: parts[2], MinNodes: &least, MaxNodes: &most, Source: landing.FromClusterAutoscaler,
				})
			}
		}
	}
	return all
}

// nodesFor returns the nodes and shapes that the pods of a group see as different, one of each class.
func (x *inventory) nodesFor(g rayGroup) []landing.Node {
	nodes, known := x.ofGroup[g.Pods]
	if !known {
		nodes = x.stock.For(&g.Pods.Pod)
		x.ofGroup[g.Pods] = nodes
	}
	return nodes
}

// room returns how far a pool may grow.
func (x *inventory) room(pool string) landing.Room {
	return x.stock.Rooms[slices.IndexFunc(x.stock.Rooms, func(r landing.Room) bool { return r.Pool == pool })]
}

// blockingTaints are the taints that alone keep a group off a node.
type blockingTaints struct {
	Taints []sharing.Taint
	Node   string
}

// blockedBy returns the taints that alone keep the group off the first such node, if its pods fit on no node. A
// taint that a live pod of the group tolerates blocks nothing: an admission plugin adds the toleration.
func (x *inventory) blockedBy(g rayGroup) blockingTaints {
	found, known := x.blocking[g.Workers]
	if !known {
		found = x.findBlockingTaints(g)
		x.blocking[g.Workers] = found
	}
	return found
}

func (x *inventory) findBlockingTaints(g rayGroup) blockingTaints {
	shape, nodes := g.Workers.Pod, x.nodesFor(g)
	if g.Workers.Suspended || !shape.Fit(nodes).None() {
		return blockingTaints{}
	}
	for _, node := range nodes {
		bare := node
		bare.Taints = nil
		if shape.Fit([]landing.Node{bare}).None() {
			continue
		}
		found := blockingTaints{Node: node.Name}
		for _, taint := range node.Taints {
			bare.Taints = []sharing.Taint{taint}
			if shape.Fit([]landing.Node{bare}).None() && !x.podsTolerate(g, taint) {
				found.Taints = append(found.Taints, taint)
			}
		}
		return found
	}
	return blockingTaints{}
}

func (x *inventory) podsTolerate(g rayGroup, taint sharing.Taint) bool {
	for _, pod := range x.podsOf(g.Of, g.Name) {
		for _, t := range pod.Root().Items("spec", "tolerations") {
			if t.Text("key") == taint.Key && (t.Text("operator") == "Exists" || t.Text("value") == taint.Value) {
				return true
			}
		}
	}
	return false
}

// nodePools returns Karpenter's NodePools.
func (x *inventory) nodePools() (list []*Object) {
	for _, o := range x.ByKind["NodePool"] {
		if strings.HasPrefix(o.Root().Text("apiVersion"), "karpenter.sh/") {
			list = append(list, o)
		}
	}
	return list
}

// nodePoolRefuses returns why no pod of a group, or head, can be on a node of a NodePool; empty if one could, or if the
// NodePool cannot be read.
func (x *inventory) nodePoolRefuses(nodePool string, g rayGroup) string {
	at := slices.IndexFunc(x.stock.Rooms, func(r landing.Room) bool { return r.Pool == nodePool })
	if at < 0 {
		return ""
	}
	refusal := x.stock.Rooms[at].Refusal(&g.Pods.Pod)
	for _, pool := range x.poolsOf(g) {
		if pool.Pool == nodePool && (pool.Holds > 0 || refusal == "") {
			return ""
		}
	}
	return cmp.Or(refusal, "the nodes of NodePool "+nodePool+" show that it adds none on which a pod fits")
}

// poolsOf returns how many pods of a group each pool of nodes that could hold one may ever hold, were it empty.
func (x *inventory) poolsOf(g rayGroup) []landing.PoolPods {
	list, known := x.pools[g.Pods]
	if !known {
		list = x.stock.Where(&g.Pods.Pod).Pods
		x.pools[g.Pods] = list
	}
	return list
}
