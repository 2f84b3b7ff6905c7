package decode

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	resourcehelper "k8s.io/component-helpers/resource"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// limitFault is what a LimitRange refuses of a container or of a pod: an amount of a resource in a section, which is
// limits or requests.
type limitFault struct {
	in                           *corev1.LimitRange
	section, resource, seen, why string
}

// sidecarOf returns the autoscaler that the operator adds to the head, with what it asks for unless autoscalerOptions
// has resources (KubeRay 1.6.2, BuildAutoscalerContainer).
func sidecarOf(spec Fields) corev1.Container {
	asks := limitedTo("500m", "512Mi")
	if options := spec.Object("autoscalerOptions"); options.Has("resources") {
		asks = resourcesOf(options)
	}
	return corev1.Container{Name: autoscalerContainer, Resources: asks}
}

func limitedTo(cpu, memory string) corev1.ResourceRequirements {
	list := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}
	return corev1.ResourceRequirements{Limits: list, Requests: merged(list)}
}

// UnlessInitOff begins a sentence on that init container, because it is unknown how the operator runs.
const UnlessInitOff = "unless the operator runs with ENABLE_INIT_CONTAINER_INJECTION=false, "

// merged returns the amounts of all lists; of several amounts of a resource, the last one counts.
func merged(lists ...corev1.ResourceList) corev1.ResourceList {
	all := corev1.ResourceList{}
	for _, list := range lists {
		maps.Copy(all, list)
	}
	return all
}

// containerLimits returns the items of a LimitRange for containers, with the defaults of the API server (Kubernetes
// 1.36, SetDefaults_LimitRangeItem).
func containerLimits(limits *corev1.LimitRange) (items []corev1.LimitRangeItem) {
	for _, item := range limits.Spec.Limits {
		if item.Type == corev1.LimitTypeContainer {
			item.Default = merged(item.Max, item.Default)
			item.DefaultRequest = merged(item.Min, item.Default, item.DefaultRequest)
			items = append(items, item)
		}
	}
	return items
}

// limitFaults gives a container the defaults of all LimitRanges of its namespace, and then returns what they refuse of
// it, like the API server (Kubernetes 1.36, plugin/pkg/admission/limitranger): amounts below min or above max, limits
// above their ratio to the request, and requests above a limit that a LimitRange sets.
func limitFaults(ranges []*corev1.LimitRange, asks *corev1.ResourceRequirements) (faults []limitFault) {
	limits, requests := corev1.ResourceList{}, corev1.ResourceList{}
	for _, in := range slices.Backward(ranges) { // the first LimitRange counts, and the last item of it
		for _, item := range containerLimits(in) {
			maps.Copy(limits, item.Default)
			maps.Copy(requests, item.DefaultRequest)
		}
	}
	asks.Requests = merged(requests, asks.Limits, asks.Requests) // what has only a limit requests it
	asks.Limits = merged(limits, asks.Limits)
	for _, in := range ranges {
		for _, item := range containerLimits(in) {
			faults = append(faults, itemFaults(in, item, asks)...)
		}
	}
	return faults
}

// podLimitFaults returns what LimitRanges refuse of the containers of a pod together. They have their defaults already.
func podLimitFaults(ranges []*corev1.LimitRange, pod *corev1.Pod) (faults []limitFault) {
	options := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	asks := &corev1.ResourceRequirements{
		Requests: resourcehelper.PodRequests(pod, options), Limits: resourcehelper.PodLimits(pod, options),
	}
	for _, in := range ranges {
		for _, item := range in.Spec.Limits {
			if item.Type == corev1.LimitTypePod {
				faults = append(faults, itemFaults(in, item, asks)...)
			}
		}
	}
	for i, fault := range faults {
		faults[i].why = "for " + fault.resource + " in " + fault.section + " of all containers together, it wants " +
			fault.why
	}
	return faults
}

// itemFaults returns what an item of a LimitRange refuses.
func itemFaults(
	in *corev1.LimitRange, item corev1.LimitRangeItem, asks *corev1.ResourceRequirements,
) (faults []limitFault) {
	names := merged(item.Max, item.Min, item.Default, item.MaxLimitRequestRatio)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		limit, limited := asks.Limits[name]
		request, requested := asks.Requests[name]
		refuse := func(section, seen, why string) {
			faults = append(faults, limitFault{in, section, string(name), seen, why})
		}
		most, bounded := item.Max[name]
		least, floored := item.Min[name]
		ratio, related := item.MaxLimitRequestRatio[name]
		times := 1000 * float64(limit.MilliValue()) / float64(request.MilliValue())
		byDefault, sets := item.Default[name]
		switch {
		case sets && byDefault.Equal(limit) && request.Cmp(limit) > 0:
			refuse("requests", request.String(), "it sets the limit "+limit.String()+", below the request")
		case bounded && !limited:
			refuse("limits", "", "a limit of at most "+most.String())
		case bounded && limit.Cmp(most) > 0:
			refuse("limits", limit.String(), "at most "+most.String())
		case bounded && request.Cmp(most) > 0: // of a pod, of which some containers have no limit
			refuse("requests", request.String(), "at most "+most.String())
		case floored && (!requested || request.Cmp(least) < 0):
			refuse("requests", request.String(), "at least "+least.String())
		case floored && limited && limit.Cmp(least) < 0:
			refuse("limits", limit.String(), "at least "+least.String())
		case related && (limit.IsZero() || request.IsZero() || times > float64(ratio.MilliValue())):
			refuse("limits", limit.String(),
				"a limit of at most "+ratio.String()+" times the request, which is "+request.String())
		}
	}
	return faults
}

// UnderLimitRanges applies the LimitRanges of the namespace to the groups of a RayCluster that has just been decoded:
// their pods request the defaults, and a group whose pods one refuses is closed. head is HeadGroup; nil leaves out the
// head.
func UnderLimitRanges(
	object *unstructured.Unstructured, d *Decoded, head *nodepool.WorkerGroup, ranges []*corev1.LimitRange,
) {
	spec := FieldsOf(object.Object, nil).Object("spec")
	groups := spec.Objects("workerGroupSpecs")
	d.limitedSince = map[string]time.Time{}
	for i := range d.Cluster.Groups {
		g := &d.Cluster.Groups[i]
		at := fmt.Sprintf("spec.workerGroupSpecs[%d].template", g.Index)
		d.underLimits(g, at, podOf(groups[g.Index].Object("template")), nil, ranges)
	}
	if head != nil {
		beside := []corev1.Container{}
		if spec.Flag("enableInTreeAutoscaling") {
			beside = append(beside, sidecarOf(spec))
		}
		pod := podOf(spec.Object("headGroupSpec").Object("template"))
		d.underLimits(head, "spec.headGroupSpec.template", pod, beside, ranges)
	}
}

// underLimits applies LimitRanges to the pod of a group at a field. beside are the containers that the operator adds to
// a head; nil is a worker.
func (d *Decoded) underLimits(
	g *nodepool.WorkerGroup, at string, pod *corev1.Pod, beside []corev1.Container, ranges []*corev1.LimitRange,
) {
	found := func(fault limitFault, severity raydemand.Severity, field, of, fix string) {
		if changed := ChangedAt(fault.in); changed.After(d.limitedSince[g.Name]) {
			d.limitedSince[g.Name] = changed
		}
		d.Findings = append(d.Findings, raydemand.Finding{Code: PodsRefused, Severity: severity,
			Object: "RayCluster " + d.Cluster.Key.String(), Seen: fault.seen, Field: at + field, Fix: fix,
			Why: "LimitRange " + fault.in.Name + " refuses every pod of the group: " + of + fault.why})
	}
	check := func(list string, containers []corev1.Container) {
		for k := range containers {
			for _, fault := range limitFaults(ranges, &containers[k].Resources) {
				field := fmt.Sprintf(".spec.%s[%d].resources.%s.%s", list, k, fault.section, fault.resource)
				g.Broken = true
				found(fault, raydemand.Error, field, "", "set a limit and a request that the LimitRange allows")
			}
		}
	}
	check("containers", pod.Spec.Containers)
	check("initContainers", pod.Spec.InitContainers)
	for k := range beside {
		limitFaults(ranges, &beside[k].Resources)
	}
	pod.Spec.Containers = append(pod.Spec.Containers, beside...)
	alone, waiting := podLimitFaults(ranges, pod), *pod
	if beside == nil {
		waits := *waitForGCS.DeepCopy()
		for _, fault := range limitFaults(ranges, &waits.Resources) {
			found(fault, raydemand.Warning, "", fmt.Sprintf("%sfor %s in %s of its init container wait-gcs-ready, "+
				"the LimitRange wants ", UnlessInitOff, fault.resource, fault.section),
				"let the LimitRange allow a container with 200m of cpu and 256Mi of memory, or turn the init "+
					"container off for all RayClusters: ENABLE_INIT_CONTAINER_INJECTION=false in the operator's "+
					"Deployment")
		}
		waiting.Spec.InitContainers = append(slices.Clip(pod.Spec.InitContainers), waits)
	}
	for _, fault := range podLimitFaults(ranges, &waiting) {
		severity, of := raydemand.Error, ""
		if len(alone) == 0 {
			severity, of = raydemand.Warning, UnlessInitOff
		}
		g.Broken = g.Broken || len(alone) > 0
		found(fault, severity, ".spec.containers", of, "set limits and requests that add up to what the LimitRange "+
			"allows")
	}
	g.Unstated = undefaulted(ranges, g.Unstated)
	g.Pod.AtLeast(requestsOf(pod), limitsOf(pod))
}

// undefaulted returns of what containers do not state (WorkerGroup.Unstated) that of which LimitRanges have no default.
func undefaulted(ranges []*corev1.LimitRange, unstated map[string][]string) map[string][]string {
	left := maps.Clone(unstated)
	for _, in := range ranges {
		for _, item := range containerLimits(in) {
			for name := range item.Default {
				delete(left, "limits."+string(name))
			}
			for name := range item.DefaultRequest {
				delete(left, "requests."+string(name))
			}
		}
	}
	return left
}

// TypedLimits is Typed for a LimitRange or a ResourceQuota. It also returns types of limits that do not exist, which
// the API server refuses.
func TypedLimits(object map[string]any, into any) (faults []string) {
	if faults = Typed(object, into); len(faults) > 0 {
		return faults
	}
	for _, item := range fieldpath.Of(object, nil).Items("spec", "limits") {
		of := item.Text("type")
		known := slices.Contains([]corev1.LimitType{
			corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim,
		}, corev1.LimitType(of))
		if !known && (!strings.Contains(of, "/") || len(validation.IsQualifiedName(of)) > 0) {
			faults = append(faults, fmt.Sprintf("%s is %s: want Pod, Container, PersistentVolumeClaim or a qualified "+
				"name", item.Path("type"), fieldpath.Excerpt(strconv.Quote(of), 60)))
		}
	}
	return faults
}

// ChangedAt returns when an object was last changed, apart from its status.
func ChangedAt(object metav1.Object) time.Time {
	at := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(at) && entry.Subresource == "" {
			at = entry.Time.Time
		}
	}
	return at
}
