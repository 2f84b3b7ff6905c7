package doctor

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Candidates are the nodes on which pods could run. They are computed once for all groups: a check that visits every
// node for every group takes minutes on a large fleet.
type candidates struct {
	// byName are the nodes of the input, and any whether there are nodes or shapes of pools.
	byName map[string]*nodeObject
	any    bool
	// nodes say where a group can run. at is when the objects were read.
	nodes *landing.Nodes
	at    time.Time
	// ofGroup and blocking are remembered for each group that a check has asked for.
	ofGroup  map[*nodepool.WorkerGroup][]landing.Node
	pools    map[*nodepool.WorkerGroup][]landing.Pods
	blocking map[*nodepool.WorkerGroup]blockingTaints
}

func newCandidates(input Input, found []*nodeObject, deployments []*Object) candidates {
	c := candidates{
		byName:   make(map[string]*nodeObject, len(found)),
		ofGroup:  map[*nodepool.WorkerGroup][]landing.Node{},
		pools:    map[*nodepool.WorkerGroup][]landing.Pods{},
		blocking: map[*nodepool.WorkerGroup]blockingTaints{},
	}
	nodes := make([]landing.Node, len(found))
	for i, n := range found {
		c.byName[n.Name] = n
		nodes[i] = n.Node.Fit
	}
	shapes := input.Pools.Shapes(input.Reader)
	for i := range shapes {
		shapes[i].Open = input.Open
	}
	c.nodes = landing.NodesOf(nodes, landing.Pools{
		Rooms: landing.Rooms(nodes, input.Pools, ceilings(input.Ceilings, deployments)), Shapes: shapes,
		Complete: input.Pools.Complete, PoolLabel: input.Reader.PoolLabel,
	})
	c.any = len(nodes)+len(shapes) > 0
	c.at = input.Reader.At
	return c
}

// NoNode returns what plans say about a group for whose pods there is no known node, as nodepool.WorkerGroup.NoNode.
// Without any node, only what the configuration of pools proves counts.
func (c *candidates) NoNode(g rayGroup) (raydemand.Finding, bool) {
	workers := *g.Workers
	if !c.any {
		return workers.JudgeUnseen(c.nodes)
	}
	workers.Judge(c.nodes.Where(&workers.Pod).Verdict, c.at)
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
		for _, word := range o.Arguments("cluster-autoscaler") {
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

// NodesFor returns the nodes and shapes that a worker group sees as different, one of each class.
func (c *candidates) NodesFor(g rayGroup) []landing.Node { return c.nodesFor(g.Workers) }

func (c *candidates) nodesFor(pods *nodepool.WorkerGroup) []landing.Node {
	nodes, known := c.ofGroup[pods]
	if !known {
		nodes = c.nodes.For(&pods.Pod)
		c.ofGroup[pods] = nodes
	}
	return nodes
}

// NodesForPod returns the nodes and shapes that a pod sees as different, one of each class.
func (c *candidates) NodesForPod(pod *landing.PodShape) []landing.Node { return c.nodes.For(pod) }

// VisitReal calls visit for those nodes that exist, until it returns false.
func (c *candidates) VisitReal(nodes []landing.Node, visit func(*nodeObject) bool) {
	for i := range nodes {
		if !nodes[i].Declared && !visit(c.byName[nodes[i].Name]) {
			return
		}
	}
}

// Pools returns how many pods of the group each pool of nodes may ever hold, were it empty.
func (c *candidates) Pools(g rayGroup) []landing.Pods { return c.poolsOf(g.Workers) }

// Room returns how far a pool may grow.
func (c *candidates) Room(pool string) landing.Room {
	return c.nodes.Rooms[slices.IndexFunc(c.nodes.Rooms, func(r landing.Room) bool { return r.Pool == pool })]
}

// BlockingTaints are the taints that alone keep a group off a node.
type blockingTaints struct {
	Taints []sharing.Taint
	Node   string
}

// BlockingTaints returns the taints that alone keep the group off the first such node, if its pods fit on no node. A
// taint that a live pod of the group tolerates blocks nothing: an admission plugin adds the toleration.
func (x *inventory) BlockingTaints(g rayGroup) blockingTaints {
	found, known := x.blocking[g.Workers]
	if !known {
		found = x.findBlockingTaints(g)
		x.blocking[g.Workers] = found
	}
	return found
}

func (x *inventory) findBlockingTaints(g rayGroup) blockingTaints {
	shape, nodes := g.Workers.Pod, x.NodesFor(g)
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
	for _, pod := range x.PodsOf(g.Of, g.Name) {
		for _, t := range pod.Root().Items("spec", "tolerations") {
			if t.Text("key") == taint.Key && (t.Text("operator") == "Exists" || t.Text("value") == taint.Value) {
				return true
			}
		}
	}
	return false
}

// NodePools returns Karpenter's NodePools.
func (x *inventory) NodePools() (list []*Object) {
	for _, o := range x.ByKind["NodePool"] {
		if strings.HasPrefix(o.Root().Text("apiVersion"), "karpenter.sh/") {
			list = append(list, o)
		}
	}
	return list
}

// NodePoolRefuses returns why no pod of a group, or head, can be on a node of a NodePool; empty if one could, or if the
// NodePool cannot be read.
func (c *candidates) NodePoolRefuses(nodePool string, g rayGroup) string {
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
func (c *candidates) poolsOf(pods *nodepool.WorkerGroup) []landing.Pods {
	list, known := c.pools[pods]
	if !known {
		list = c.nodes.Where(&pods.Pod).Pods
		c.pools[pods] = list
	}
	return list
}

// Tolerates reports whether pods of the group tolerate a taint.
func (g rayGroup) Tolerates(taint sharing.Taint) bool {
	return g.Pods.Pod.Tolerates(&landing.Node{}, taint)
}
