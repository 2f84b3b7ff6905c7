package decode

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// LimitFault is what a LimitRange refuses of a container: an amount of Resource in Section, limits or requests.
type LimitFault struct{ Section, Resource, Seen, Why string }

// containerLimits returns the items of a LimitRange for containers, with the defaults of the API server (Kubernetes
// 1.36, SetDefaults_LimitRangeItem).
func containerLimits(limits *corev1.LimitRange) (items []corev1.LimitRangeItem) {
	for _, item := range limits.Spec.Limits {
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		filled := func(list corev1.ResourceList, defaults ...corev1.ResourceList) corev1.ResourceList {
			all := corev1.ResourceList{}
			for _, more := range slices.Backward(defaults) {
				maps.Copy(all, more)
			}
			maps.Copy(all, list)
			return all
		}
		item.Default = filled(item.Default, item.Max)
		item.DefaultRequest = filled(item.DefaultRequest, item.Default, item.Min)
		items = append(items, item)
	}
	return items
}

// LimitFaults returns what a LimitRange refuses of a container with the given amounts by section and resource: those
// that it forbids, and requests above a limit that it sets.
func LimitFaults(
	limits *corev1.LimitRange, amount func(section, name string) (resource.Quantity, bool),
) (faults []LimitFault) {
	for _, item := range containerLimits(limits) {
		names := corev1.ResourceList{}
		maps.Copy(names, item.Max)
		maps.Copy(names, item.Min)
		maps.Copy(names, item.Default)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			limit, limited := amount("limits", string(name))
			request, requested := amount("requests", string(name))
			if !requested { // the API server sets it to a limit, and a LimitRange to its default
				if request = limit; !limited {
					request = item.DefaultRequest[name]
				}
			}
			most, bounded := item.Max[name]
			least, floored := item.Min[name]
			byDefault, has := item.Default[name]
			if !limited {
				limit = byDefault
			}
			switch {
			case !limited && has && request.Cmp(limit) > 0:
				faults = append(faults, LimitFault{"requests", string(name), request.String(),
					"it sets the limit " + limit.String() + ", below the request"})
			case bounded && limit.Cmp(most) > 0:
				faults = append(faults, LimitFault{"limits", string(name), limit.String(), "at most " + most.String()})
			case floored && request.Cmp(least) < 0:
				faults = append(faults, LimitFault{"requests", string(name), request.String(),
					"at least " + least.String()})
			}
		}
	}
	return faults
}

// UnderLimitRange applies a LimitRange of the namespace to the groups of a RayCluster that has just been decoded: their
// pods request its defaults, and a group whose pods it refuses is closed.
func UnderLimitRange(object *unstructured.Unstructured, d *Decoded, limits *corev1.LimitRange) {
	groups, _, _ := unstructured.NestedSlice(object.Object, "spec", "workerGroupSpecs")
	for i := range d.Cluster.Groups {
		g := &d.Cluster.Groups[i]
		spec, _, _ := unstructured.NestedMap(groups[g.Index].(map[string]any), "template", "spec")
		var pod corev1.Pod
		if runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &pod.Spec) != nil {
			continue // decoding has said what cannot be read
		}
		for k := range pod.Spec.Containers {
			asks := &pod.Spec.Containers[k].Resources
			sections := map[string]corev1.ResourceList{"limits": asks.Limits, "requests": asks.Requests}
			for _, fault := range LimitFaults(limits, func(section, name string) (resource.Quantity, bool) {
				amount, set := sections[section][corev1.ResourceName(name)]
				return amount, set
			}) {
				g.Broken = true
				d.Findings = append(d.Findings, raydemand.Finding{Code: PodsRefused, Severity: raydemand.Error,
					Object: "RayCluster " + d.Cluster.Key.String(), Seen: fault.Seen,
					Field: fmt.Sprintf("spec.workerGroupSpecs[%d].template.spec.containers[%d].resources.%s.%s",
						g.Index, k, fault.Section, fault.Resource),
					Why: "LimitRange " + limits.Name + " refuses every pod of the group: " + fault.Why,
					Fix: "set a limit and a request that the LimitRange allows"})
			}
			for _, item := range containerLimits(limits) {
				if asks.Requests == nil {
					asks.Requests = corev1.ResourceList{}
				}
				for name, amount := range item.DefaultRequest {
					_, requested := asks.Requests[name]
					if _, limited := asks.Limits[name]; !requested && !limited {
						asks.Requests[name] = amount
					}
				}
			}
		}
		for name, amount := range requestsOf(&pod) {
			g.Pod.Requests[name] = max(g.Pod.Requests[name], amount)
		}
	}
}
