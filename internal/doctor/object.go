package doctor

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Object is a Kubernetes object as the API server returns it.
type Object struct {
	Kind, Namespace, Name string
	// Generated says that the API server names the object when it is created (metadata.generateName). Name is then the
	// beginning of the name, and *.
	Generated bool
	Fields    map[string]any
	// Cluster is what Heliostat reads in the spec of a RayCluster. The keys in Spec lead to it: {"spec"} in a
	// RayCluster, {"spec", "rayClusterSpec"} in a RayJob. Nil for other kinds.
	Cluster *nodepool.Cluster
	Spec    []string
	// Head is what Heliostat reads in the head group, as in a worker group; nil if Cluster is.
	Head *nodepool.WorkerGroup
	// Node is set for nodes.
	Node *nodeViews
	// RayCluster names the RayCluster that a CapacityPolicy or a ResourceRequest is for; empty for other kinds.
	RayCluster string
	// Place is where the object is, such as "document 2 of llm.yaml"; empty for an object of an API server.
	Place string
	// Unreadable says what cannot be read in the object, with field and value if these are known.
	Unreadable []string
	// names know what GPU resources are.
	names gpuinfo.Names
	// schema is what KubeRay's schema says of the object, once it was asked.
	schema *schemaFaults
}

// nodeViews are two views of a node: what it says of its GPUs, and what decides which pods fit.
type nodeViews struct {
	GPUs sharing.NodeObject
	Fit  landing.Node
}

func (o *Object) object() *Object { return o }

// String returns Kind/namespace/name, without empty parts.
func (o *Object) String() string {
	rest := slices.DeleteFunc([]string{o.Namespace, o.Name}, func(part string) bool { return part == "" })
	return strings.Join(append([]string{o.Kind}, rest...), "/")
}

// Root returns the fields of the object.
func (o *Object) Root() fieldpath.Value { return fieldpath.Of(o.Fields, nil) }

// Annotations of a RayCluster.
const (
	annotationPrefix = "heliostat.dev/"
	modeAnnotation   = annotationPrefix + "mode"
)

// raySpec returns the spec of the RayCluster in the object.
func (o *Object) raySpec() fieldpath.Value { return o.Root().Get(o.Spec...) }

// modeField returns the annotation that says whether Heliostat manages the RayCluster, and Mode its value.
func (o *Object) modeField() fieldpath.Value {
	return o.Root().Get("metadata", "annotations", modeAnnotation)
}

// Mode returns the mode that the RayCluster itself asks for.
func (o *Object) Mode() nodepool.Mode { return nodepool.Mode(o.modeField().Text()) }

// raysAutoscaler reports whether Ray's own autoscaler runs beside the head.
func (o *Object) raysAutoscaler() bool {
	return o.Cluster.InTreeAutoscaling &&
		!strings.Contains(o.raySpec().Text("autoscalerOptions", "image"), heliostatImage)
}

// usesAutoscalerV2 reports whether the RayCluster asks for Ray's autoscaler v2, in its field or with the head's
// variable.
func (o *Object) usesAutoscalerV2() bool {
	_, variable := o.autoscalerV2Variable()
	return o.raySpec().Text("autoscalerOptions", "version") == "v2" || variable == "1"
}

// autoscalerV2Variable returns the path of the head's variable RAY_enable_autoscaler_v2, and its value as 1 or 0, or
// nothing if it is not set or comes from another object.
func (o *Object) autoscalerV2Variable() (at fieldpath.Path, value string) {
	for _, g := range o.groups() {
		if g.Workers != nil {
			continue
		}
		for _, variable := range g.rayContainer().Items("env") {
			if !strings.EqualFold(variable.Text("name"), "RAY_enable_autoscaler_v2") {
				continue
			}
			switch at = variable.Path(); strings.ToLower(variable.Text("value")) {
			case "":
			case "1", "true":
				value = "1"
			default:
				value = "0"
			}
		}
	}
	return at, value
}

// accepted reports whether the operator has accepted this generation of the spec. It then knows better than the rules
// of one of its versions.
func (o *Object) accepted() bool {
	return o.Cluster.Generation > 0 && o.Cluster.ObservedGeneration >= o.Cluster.Generation
}

// rayGroup is the head group or a worker group of a RayCluster. Its fields are read as those of a Value.
type rayGroup struct {
	fieldpath.Value
	Of   *Object
	Name string
	// Workers is what Heliostat reads in a worker group; nil for the head. Pods is the same, for the head too: what its
	// pods request, and which GPUs they announce.
	Workers, Pods *nodepool.WorkerGroup
}

func (g rayGroup) object() *Object { return g.Of }

// groups returns the head group and the worker groups of a RayCluster.
func (o *Object) groups() (groups []rayGroup) {
	if head := o.raySpec().Get("headGroupSpec"); head.Has() {
		groups = append(groups, rayGroup{head, o, "headgroup", nil, cmp.Or(o.Head, &nodepool.WorkerGroup{})})
	}
	for i, v := range o.raySpec().Items("workerGroupSpecs") {
		if i < len(o.Cluster.Groups) {
			w := &o.Cluster.Groups[i]
			groups = append(groups, rayGroup{v, o, w.Name, w, w})
		}
	}
	return groups
}

// template returns the spec of the group's pods.
func (g rayGroup) template() fieldpath.Value { return g.Get("template", "spec") }

// containers returns all containers of the pod, init containers last.
func (g rayGroup) containers() []fieldpath.Value {
	return append(g.template().Items("containers"), g.template().Items("initContainers")...)
}

// rayContainer returns the container that runs Ray: the first one, whatever its name.
func (g rayGroup) rayContainer() fieldpath.Value {
	if containers := g.template().Items("containers"); len(containers) > 0 {
		return containers[0]
	}
	return fieldpath.At(g.template().Path("containers").Index(0))
}

// isRayContainer reports whether a container of the group is the one that runs Ray.
func (g rayGroup) isRayContainer(container fieldpath.Value) bool {
	return container.Path().String() == g.rayContainer().Path().String()
}

// quantity reads an amount. The API server stores it as a string or, if the manifest has a number, as that number.
func quantity(v fieldpath.Value) (q resource.Quantity, ok bool) {
	if !v.Has() {
		return q, false
	}
	q, err := resource.ParseQuantity(v.String())
	return q, err == nil
}

// hasResource reports whether the group's field resources has the name. The operator ignores its case.
func (g rayGroup) hasResource(name string) bool {
	return slices.ContainsFunc(g.Keys("resources"), func(key string) bool { return strings.EqualFold(key, name) })
}

// declaredGPUs returns the number of GPUs that the group's field resources, or else rayStartParams, declares. It
// returns false if there is none, or if it is not a whole number.
func (g rayGroup) declaredGPUs() (n int64, at fieldpath.Path, ok bool) {
	declared := g.Pods.GPUs.Declared
	if declared == nil || *declared%raydemand.One != 0 {
		return 0, at, false
	}
	section, key, _ := strings.Cut(g.Pods.GPUs.DeclaredBy, ".")
	return int64(*declared / raydemand.One), g.Path(section, key), true
}

// declaresGPUs reports whether the group declares how many GPUs it has, rightly or wrongly.
func (g rayGroup) declaresGPUs() bool {
	return g.Pods.GPUs.Declared != nil || g.Has("rayStartParams", "num-gpus")
}

// hasAccelerator reports whether the Ray container has a limit that the operator turns into a flag of `ray start`.
func (g rayGroup) hasAccelerator() bool { return len(g.Pods.GPUs.Counted)+len(g.Pods.GPUs.Passed) > 0 }

// gpuRequest is one GPU resource of one container, with its limit and its request, one of which may be absent.
type gpuRequest struct {
	rayGroup
	Container      fieldpath.Value
	Resource       string
	Limit, Request fieldpath.Value
}

// gpuRequests returns the GPU resources that the group's containers name in limits or requests. A name that no table
// has counts, too.
func (g rayGroup) gpuRequests() []gpuRequest {
	var all []gpuRequest
	for _, c := range g.containers() {
		limits, requests := c.Get("resources", "limits"), c.Get("resources", "requests")
		more := slices.DeleteFunc(requests.Keys(), func(name string) bool { return limits.Has(name) })
		for _, name := range append(limits.Keys(), more...) {
			if isGPU(g.Of.names, name) {
				all = append(all, gpuRequest{g, c, name, limits.Get(name), requests.Get(name)})
			}
		}
	}
	return all
}

// requestsGPU reports whether a container of the group names a GPU resource.
func (g rayGroup) requestsGPU() bool { return len(g.gpuRequests()) > 0 }

// requestsDevices reports whether a container of the group names a GPU, or the Ray container another accelerator.
func (g rayGroup) requestsDevices() bool {
	for name := range g.Pods.GPUs.Limits {
		if _, is := gpuinfo.AcceleratorOf(name); is {
			return true
		}
	}
	return g.requestsGPU()
}

// mayHaveGPUs reports whether anything gives the group's pods GPUs.
func (g rayGroup) mayHaveGPUs() bool {
	return g.Pods.GPUs.Claims || g.Pods.Pod.Share != nil || g.requestsGPU() ||
		strings.Contains(g.template().Text("runtimeClassName"), "nvidia")
}

// field returns the limit, or the request if there is no limit.
func (r gpuRequest) field() fieldpath.Value {
	if r.Limit.Has() {
		return r.Limit
	}
	return r.Request
}

// ofRay reports whether the container runs Ray.
func (r gpuRequest) ofRay() bool { return r.isRayContainer(r.Container) }

// isDevices reports whether units of the resource are devices: cards, MIG instances or shares.
func (r gpuRequest) isDevices() bool {
	resource, err := r.Of.names.Resource(r.Resource)
	return err == nil && resource.Role == gpuinfo.Devices
}

// wholeGPUs returns the one resource of the Ray container whose units Ray counts as GPUs, and its limit. It returns no
// name if there are several, or if other resources of the container make shares of them.
func (g rayGroup) wholeGPUs() (name string, limit int64) {
	for resource, amount := range g.Pods.GPUs.Limits {
		if amount <= 0 || !isGPU(g.Of.names, resource) {
			continue
		}
		whole := resource == gpuinfo.NvidiaGPU || resource == "amd.com/gpu" ||
			strings.HasPrefix(resource, gpuinfo.MIGPrefix)
		if !whole || name != "" || amount%raydemand.One != 0 {
			return "", 0
		}
		name, limit = resource, int64(amount/raydemand.One)
	}
	return name, limit
}

// isGPU reports whether the name is that of a GPU resource, known or not.
func isGPU(names gpuinfo.Names, name string) bool {
	_, err := names.Resource(name)
	return err == nil || errors.Is(err, gpuinfo.ErrUnknownResource)
}
