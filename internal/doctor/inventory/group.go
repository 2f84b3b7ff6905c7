package inventory

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Group is the head group or a worker group of a RayCluster. Its fields are read as those of a Value.
type Group struct {
	fieldpath.Value
	Of   *Object
	Name string
	// Workers is what Heliostat reads in a worker group; nil for the head.
	Workers *nodepool.WorkerGroup
	// resourceNames know what GPU resources are.
	resourceNames gpuinfo.Names
}

// GroupsOf returns the head group and the worker groups of a RayCluster.
func GroupsOf(o *Object, names gpuinfo.Names) []Group {
	var groups []Group
	if head := o.RaySpec().Get("headGroupSpec"); head.Has() {
		groups = append(groups, Group{Value: head, Of: o, Name: "headgroup", resourceNames: names})
	}
	for i, v := range o.RaySpec().Items("workerGroupSpecs") {
		if i < len(o.Cluster.Groups) {
			workers := &o.Cluster.Groups[i]
			groups = append(groups, Group{Value: v, Of: o, Name: workers.Name, Workers: workers, resourceNames: names})
		}
	}
	return groups
}

// Template returns the spec of the group's pods.
func (g Group) Template() fieldpath.Value { return g.Get("template", "spec") }

// Containers returns all containers of the pod, init containers last.
func (g Group) Containers() []fieldpath.Value {
	return append(g.Template().Items("containers"), g.Template().Items("initContainers")...)
}

// RayContainer returns the container that runs Ray: the first one, whatever its name.
func (g Group) RayContainer() fieldpath.Value {
	if containers := g.Template().Items("containers"); len(containers) > 0 {
		return containers[0]
	}
	return fieldpath.At(g.Template().Path("containers").Index(0))
}

// IsRayContainer reports whether a container of the group is the one that runs Ray.
func (g Group) IsRayContainer(container fieldpath.Value) bool {
	return container.Path().Pointer() == g.RayContainer().Path().Pointer()
}

// Env returns a variable of a container, the last one of the name. It returns false if there is none, or if its value
// comes from another object.
func Env(container fieldpath.Value, name string) (v fieldpath.Value, ok bool) {
	for _, entry := range container.Items("env") {
		if entry.Text("name") == name {
			v, ok = entry.Get("value"), !entry.Has("valueFrom")
		}
	}
	return v, ok
}

// Quantity reads an amount. The API server stores it as a string or, if the manifest has a number, as that number.
func Quantity(v fieldpath.Value) (q resource.Quantity, ok bool) {
	if !v.Has() {
		return q, false
	}
	q, err := resource.ParseQuantity(v.String())
	return q, err == nil
}

// HasResource reports whether the group's field resources has the name. The operator ignores its case.
func (g Group) HasResource(name string) bool {
	return slices.ContainsFunc(g.Keys("resources"), func(key string) bool { return strings.EqualFold(key, name) })
}

// DeclaredGPUs returns num-gpus of rayStartParams, or GPU of the group's field resources, which takes precedence. It
// returns false if neither is a whole number.
func (g Group) DeclaredGPUs() (n int64, at fieldpath.Path, ok bool) {
	for _, name := range g.Keys("resources") {
		v := g.Get("resources", name)
		if q, isNumber := Quantity(v); isNumber && strings.EqualFold(name, raydemand.GPU) {
			return q.Value(), v.Path(), q.MilliValue()%1000 == 0
		}
	}
	v := g.Get("rayStartParams", "num-gpus")
	n, err := strconv.ParseInt(v.Text(), 10, 64)
	return n, v.Path(), err == nil
}

// DeclaresGPUs reports whether the group declares how many GPUs it has, rightly or wrongly.
func (g Group) DeclaresGPUs() bool {
	_, _, declared := g.DeclaredGPUs()
	return declared || g.Has("rayStartParams", "num-gpus")
}

// plainMIG are the profiles that the operator counts; it does not count one with an attribute such as .me.
var plainMIG = regexp.MustCompile(`^nvidia\.com/mig-\d+g\.\d+gb$`)

// HasAccelerator reports whether the Ray container has a limit that the operator turns into a flag of `ray start`.
func (g Group) HasAccelerator() bool {
	gpus, others := g.Accelerators()
	return gpus || others
}

// Accelerators reports whether the Ray container has a limit that the operator passes to `ray start` as GPUs, and
// whether it has one that the operator passes as a resource of another name.
func (g Group) Accelerators() (gpus, others bool) {
	limits := g.RayContainer().Get("resources", "limits")
	for _, name := range limits.Keys() {
		if q, ok := Quantity(limits.Get(name)); ok && q.Sign() > 0 {
			gpus = gpus || strings.HasSuffix(name, "gpu") || plainMIG.MatchString(name)
			others = others || name == "google.com/tpu" || name == "aws.amazon.com/neuroncore"
		}
	}
	return gpus, others
}
