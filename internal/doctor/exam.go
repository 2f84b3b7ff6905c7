package doctor

import (
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
)

// exam is the input, sorted by what it is.
type exam struct {
	input    Input
	clusters []*Object
	groups   []group
	nodes    []examNode
	byKind   map[string][]*Object
	// pods are by namespace and name of their RayCluster; claims are ResourceClaims and their templates.
	pods   map[nodepool.ClusterKey][]*Object
	claims map[claimKey]*Object
	ground ground
	// strategies are, by the name of a MIG resource that somebody asks for, a node whose strategy does not announce it.
	strategies map[string]*examNode
}

type claimKey struct{ kind, namespace, name string }

// examNode is a node and what is understood of its GPUs.
type examNode struct {
	*Object
	gpus nodegpu.GPUs
}

// hasGPUs reports whether the node announces or once announced GPUs.
func (n *examNode) hasGPUs() bool {
	for name, units := range n.gpus.Units {
		if units > 0 || n.Node.GPUs.Capacity[name] > 0 {
			return true
		}
	}
	return false
}

func newExam(input Input) *exam {
	x := &exam{input: input, byKind: map[string][]*Object{}, pods: map[nodepool.ClusterKey][]*Object{}, claims: map[claimKey]*Object{}, strategies: map[string]*examNode{}}
	for i := range input.Objects {
		o := &input.Objects[i]
		x.byKind[o.Kind] = append(x.byKind[o.Kind], o)
		switch {
		case o.Cluster != nil:
			x.clusters = append(x.clusters, o)
			x.groups = append(x.groups, groupsOf(o, input.Reader.Names)...)
		case o.Node != nil:
			x.nodes = append(x.nodes, examNode{o, input.Reader.Read(o.Node.GPUs)})
		case o.Kind == "Pod":
			key := nodepool.ClusterKey{Namespace: o.Namespace, Name: o.root().get("metadata", "labels", "ray.io/cluster").text()}
			x.pods[key] = append(x.pods[key], o)
		case o.Kind == "ResourceClaim" || o.Kind == "ResourceClaimTemplate":
			x.claims[claimKey{o.Kind, o.Namespace, o.Name}] = o
		}
	}
	x.survey()
	return x
}

// podsOf are the pods of a RayCluster, of one group where it is named. Pods of a RayJob or RayService carry the name of their RayCluster, so
// they are found by that.
func (x *exam) podsOf(o *Object, group string) []*Object {
	if o.Kind != "RayCluster" || o.Name == "" {
		return nil
	}
	all := x.pods[nodepool.ClusterKey{Namespace: o.Namespace, Name: o.Name}]
	if group == "" {
		return all
	}
	var pods []*Object
	for _, pod := range all {
		if pod.root().get("metadata", "labels", "ray.io/group").text() == group {
			pods = append(pods, pod)
		}
	}
	return pods
}

// head is the head pod of a RayCluster, nil where it is not among the objects.
func (x *exam) head(o *Object) *Object {
	for _, pod := range x.podsOf(o, "") {
		if pod.root().get("metadata", "labels", "ray.io/node-type").text() == "head" {
			return pod
		}
	}
	return nil
}

// group is the head group or a worker group.
type group struct {
	value
	of   *Object
	name string
	// workers is what Heliostat reads in a worker group; nil for the head.
	workers *nodepool.WorkerGroup
	// gpuNames say what resources are.
	gpuNames gpuinfo.Names
}

func groupsOf(o *Object, names gpuinfo.Names) []group {
	head := o.spec().get("headGroupSpec")
	var groups []group
	if head.has() {
		groups = append(groups, group{value: head, of: o, name: "headgroup", gpuNames: names})
	}
	for i, v := range o.spec().get("workerGroupSpecs").items() {
		if i < len(o.Cluster.Groups) {
			groups = append(groups, group{value: v, of: o, name: o.Cluster.Groups[i].Name, workers: &o.Cluster.Groups[i], gpuNames: names})
		}
	}
	return groups
}

func (g group) template() value { return g.get("template", "spec") }

// containers are all that run in the pod, init containers last.
func (g group) containers() []value {
	return append(g.template().get("containers").items(), g.template().get("initContainers").items()...)
}

// ray is the Ray container: the first, whatever its name.
func (g group) ray() value {
	if containers := g.template().get("containers").items(); len(containers) > 0 {
		return containers[0]
	}
	return value{at: g.template().at.then("containers", 0)}
}

// patch changes the group.
func (g group) patch(ops ...op) remedy { return g.of.patch(ops...) }

// env is a variable of a container; the last of a name counts. ok is false where there is none, or its value comes from elsewhere.
func env(container value, name string) (v value, ok bool) {
	for _, entry := range container.get("env").items() {
		if entry.get("name").text() == name {
			v, ok = entry.get("value"), !entry.get("valueFrom").has()
		}
	}
	return v, ok
}
