package doctor

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// rayGroup is the head group or a worker group of a RayCluster. Its fields are read as those of a Value.
type rayGroup struct {
	fieldpath.Value
	Of   *Object
	Name string
	// Workers is what Heliostat reads in a worker group; nil for the head. Pods is the same, for the head too: what its
	// pods request, and which GPUs they announce.
	Workers, Pods *nodepool.WorkerGroup
	// resourceNames know what GPU resources are.
	resourceNames gpuinfo.Names
}

// groupsOf returns the head group and the worker groups of a RayCluster.
func groupsOf(o *Object, names gpuinfo.Names) []rayGroup {
	var groups []rayGroup
	if head := o.raySpec().Get("headGroupSpec"); head.Has() {
		read := cmp.Or(o.Head, &nodepool.WorkerGroup{})
		groups = append(groups, rayGroup{Value: head, Of: o, Name: "headgroup", Pods: read, resourceNames: names})
	}
	for i, v := range o.raySpec().Items("workerGroupSpecs") {
		if i < len(o.Cluster.Groups) {
			workers := &o.Cluster.Groups[i]
			groups = append(groups, rayGroup{
				Value: v, Of: o, Name: workers.Name, Workers: workers, Pods: workers, resourceNames: names,
			})
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
	return container.Path().Pointer() == g.rayContainer().Path().Pointer()
}

// env returns a variable of a container, the last one of the name. It returns false if there is none, or if its value
// comes from another object.
func env(container fieldpath.Value, name string) (v fieldpath.Value, ok bool) {
	for _, entry := range container.Items("env") {
		if entry.Text("name") == name {
			v, ok = entry.Get("value"), !entry.Has("valueFrom")
		}
	}
	return v, ok
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
