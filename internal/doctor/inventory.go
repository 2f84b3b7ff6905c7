package doctor

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Input is everything that is examined. A missing object silences checks and never misleads them.
type Input struct {
	Objects []Object
	// Forbidden are the kinds that the reader may not list.
	Forbidden []Forbidden
	// Reader knows the meaning of resources that are not built in, and which label names a node's pool.
	Reader sharing.Reader
	// Ceilings are how far pools of nodes may grow, from the Cluster Autoscaler's status and Karpenter's NodePools.
	Ceilings []landing.Ceiling
	// Pools is the configuration of pools; the pods of a group may fit on the nodes that an empty pool would get.
	Pools landing.Config
	// Open is what nodes of these pools may have that their shapes do not say (landing.Node).
	Open map[string]string
	// Stored says that an API server has the objects, so it has accepted them.
	Stored bool
}

// Forbidden is a kind that the reader may not list. Namespace is empty if all namespaces were asked for.
type Forbidden struct {
	// Group and Resource are as in a Role: ray.io and rayclusters, and an empty group for nodes.
	Group, Resource, Namespace string
	// Message is the API server's.
	Message string
}

// inventory is the input, sorted by what it is.
type inventory struct {
	Input    Input
	Clusters []*Object
	// Groups has the heads and the workers.
	Groups, heads, workers []rayGroup
	Nodes                  []*Object
	// ByKind has all objects, except those whose kind is another one of the same name.
	ByKind map[string][]*Object
	// pods are sorted by their RayCluster.
	pods map[nodepool.ClusterKey][]*Object

	// stock says where a group can run, and anyNode whether there are nodes or shapes of pools. It is computed once for
	// all groups, and what a check has asked is remembered: a check that visits every node for every group takes
	// minutes on a large fleet.
	stock    *landing.Nodes
	anyNode  bool
	ofGroup  map[*nodepool.WorkerGroup][]landing.Node
	pools    map[*nodepool.WorkerGroup][]landing.PoolPods
	blocking map[*nodepool.WorkerGroup]blockingTaints
}

// hasGPUs reports whether the node announces GPUs, or once did, or ResourceSlices offer some there.
func (o *Object) hasGPUs() bool {
	if len(o.Node.GPUs.Devices) > 0 {
		return true
	}
	for name, units := range o.Node.Fit.GPUs.Units {
		if units > 0 || o.Node.GPUs.Capacity[name] > 0 {
			return true
		}
	}
	return false
}

func newInventory(input Input) *inventory {
	x := &inventory{
		Input: input, ByKind: map[string][]*Object{},
		pods: map[nodepool.ClusterKey][]*Object{},
	}
	for i := range input.Objects {
		o := &input.Objects[i]
		o.names = input.Reader.Names
		if _, known := kindNamed(o.Kind); known && !o.Read() {
			continue
		}
		x.ByKind[o.Kind] = append(x.ByKind[o.Kind], o)
		switch {
		case o.Cluster != nil:
			x.Clusters = append(x.Clusters, o)
			for _, g := range o.groups() {
				x.Groups = append(x.Groups, g)
				if g.Workers == nil {
					x.heads = append(x.heads, g)
				} else {
					x.workers = append(x.workers, g)
				}
			}
		case o.Node != nil:
			x.Nodes = append(x.Nodes, o)
		case o.Kind == "Pod":
			key := nodepool.ClusterKey{Namespace: o.Namespace, Name: podLabel(o, "cluster")}
			x.pods[key] = append(x.pods[key], o)
		}
	}
	x.placeGroups()
	return x
}

// gpuRequests returns the GPU resources that the containers of all groups name.
func (x *inventory) gpuRequests() (all []gpuRequest) {
	for _, g := range x.Groups {
		all = append(all, g.gpuRequests()...)
	}
	return all
}

func podLabel(pod *Object, name string) string {
	return pod.Root().Text("metadata", "labels", "ray.io/"+name)
}

// podsOf returns the pods of a RayCluster, or of one of its groups. Pods of a RayJob or RayService have the name of
// their RayCluster, and are found by that.
func (x *inventory) podsOf(o *Object, group string) []*Object {
	if o.Kind != "RayCluster" || o.Name == "" {
		return nil
	}
	all := x.pods[nodepool.ClusterKey{Namespace: o.Namespace, Name: o.Name}]
	if group == "" {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(pod *Object) bool { return podLabel(pod, "group") != group })
}

// headPod returns the head pod of a RayCluster, or nil if it is not among the objects.
func (x *inventory) headPod(o *Object) *Object {
	for _, pod := range x.podsOf(o, "") {
		if podLabel(pod, "node-type") == "head" {
			return pod
		}
	}
	return nil
}

// find returns an object by its kind and name, or nil if it is not among the objects.
func (x *inventory) find(kind, namespace, name string) *Object {
	for _, o := range x.ByKind[kind] {
		if o.Namespace == namespace && o.Name == name {
			return o
		}
	}
	return nil
}

// claim returns the ResourceClaim or ResourceClaimTemplate that a claim of a pod names, or nil if it is not among the
// objects.
func (x *inventory) claim(namespace string, claim fieldpath.Value) *Object {
	for kind, key := range map[string]string{
		"ResourceClaim": "resourceClaimName", "ResourceClaimTemplate": "resourceClaimTemplateName",
	} {
		if o := x.find(kind, namespace, claim.Text(key)); o != nil {
			return o
		}
	}
	return nil
}

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
	rooms := landing.Rooms(nodes, x.Input.Pools, x.Input.Ceilings)
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

// nodesFor returns the nodes and shapes that the pods of a group see as different, one of each class.
func (x *inventory) nodesFor(g rayGroup) []landing.Node {
	nodes, known := x.ofGroup[g.Pods]
	if !known {
		nodes = x.stock.For(&g.Pods.Pod)
		x.ofGroup[g.Pods] = nodes
	}
	return nodes
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
		if slices.ContainsFunc(node.Taints, landing.PassingTaint) {
			continue
		}
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

// mayServe reports whether a pod of a group, or head, could be on a node of a NodePool. It could if the NodePool cannot
// be read.
func (x *inventory) mayServe(nodePool string, g rayGroup) bool {
	at := slices.IndexFunc(x.stock.Rooms, func(r landing.Room) bool { return r.Pool == nodePool })
	if at < 0 {
		return true
	}
	refused := x.stock.Rooms[at].Refusal(&g.Pods.Pod) != ""
	return slices.ContainsFunc(x.poolsOf(g), func(pool landing.PoolPods) bool {
		return pool.Pool == nodePool && (pool.Holds > 0 || !refused)
	})
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

// selected returns the heads and worker groups in the namespace of an object whose pods a label selector of the object
// matches, by the labels that the operator gives them. An empty selector matches all, and without one there is none.
func (x *inventory) selected(by *Object, selector fieldpath.Value) (groups []rayGroup) {
	matches, err := readSelector(selector)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(x.Groups), func(g rayGroup) bool {
		return g.Of.Namespace != by.Namespace || !matches.Matches(g.podLabels())
	})
}

// podLabels returns the labels of the group's pods. What the operator makes of the RayCluster's name is unknown while
// it generates that name.
func (g rayGroup) podLabels() labels.Set {
	set := labels.Set{}
	maps.Copy(set, g.Pods.Pod.Neighbors.Labels)
	if g.Of.Kind != "RayCluster" || g.Of.Generated {
		delete(set, "ray.io/cluster")
		delete(set, "ray.io/identifier")
	}
	return set
}

// readSelector reads a label selector. An absent one selects nothing.
func readSelector(v fieldpath.Value) (labels.Selector, error) {
	if !v.Has() {
		return labels.Nothing(), nil
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(v.Members(), &selector); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&selector)
}
