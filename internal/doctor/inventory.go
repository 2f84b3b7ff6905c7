package doctor

import (
	"slices"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
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
	// Partial says that only some of the RayClusters were read, those of one namespace or one of them, while nodes and
	// NodePools serve all.
	Partial bool
	// Stored says that an API server has the objects, so it has accepted them.
	Stored bool
	// Annotations are the annotations of a RayCluster that Heliostat reads, with the prefix heliostat.dev/.
	Annotations []string
	// RemovedAnnotations are annotations that the last release read, with what to use instead.
	RemovedAnnotations map[string]string
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

// newInventory sorts the input.
func newInventory(input Input) *inventory {
	x := &inventory{
		Input: input, ByKind: map[string][]*Object{},
		pods: map[nodepool.ClusterKey][]*Object{},
	}
	for i := range input.Objects {
		o := &input.Objects[i]
		if _, known := kindNamed(o.Kind); known && !o.Read() {
			continue
		}
		x.ByKind[o.Kind] = append(x.ByKind[o.Kind], o)
		switch {
		case o.Cluster != nil:
			x.Clusters = append(x.Clusters, o)
			for _, g := range groupsOf(o, input.Reader.Names) {
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

// policies returns the CapacityPolicies that were read as such.
func (x *inventory) policies() []*Object {
	return slices.DeleteFunc(slices.Clone(x.ByKind["CapacityPolicy"]), func(o *Object) bool { return o.Policy == nil })
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
	var pods []*Object
	for _, pod := range all {
		if podLabel(pod, "group") == group {
			pods = append(pods, pod)
		}
	}
	return pods
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
