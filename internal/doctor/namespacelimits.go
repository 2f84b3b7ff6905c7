package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// What the namespace allows its pods: LimitRanges, ResourceQuotas, and claims of volumes that one pod can use.

// inNamespace returns the objects of a kind in the namespace of another object.
func inNamespace[T any](x *inventory, kind string, of *Object) (all []T, names []string) {
	for _, o := range x.ByKind[kind] {
		var typed T
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Fields, &typed)
		if o.Namespace == of.Namespace && err == nil {
			all, names = append(all, typed), append(names, o.Name)
		}
	}
	return all, names
}

// limitRanges returns the LimitRanges of an object's namespace.
func limitRanges(x *inventory, of *Object) (ranges []*corev1.LimitRange) {
	all, _ := inNamespace[corev1.LimitRange](x, "LimitRange", of)
	for i := range all {
		ranges = append(ranges, &all[i])
	}
	return ranges
}

// limitRangeRefuses reports a container that a LimitRange refuses, or whose request is above a default limit of it.
func limitRangeRefuses(x *inventory, g rayGroup, report reporter) {
	ranges := limitRanges(x, g.Of)
	if g.Workers != nil && x.waitsForGCS() {
		asks, severity, unless := decode.WaitForGCS(), raydemand.Error, ""
		if len(x.programs("kuberay/operator")) == 0 {
			severity, unless = raydemand.Warning, decode.UnlessInitOff
		}
		for _, fault := range decode.LimitFaults(ranges, &asks) {
			of := x.find("LimitRange", fault.Range.Namespace, fault.Range.Name)
			report(occurrence{Path: g.template().Path(), Seen: fault.Seen, Severity: severity,
				More: "LimitRange " + fault.Range.Name + ": " + unless + decode.WaitForGCSWords(fault) + fault.Why,
				Fix:  run(kubectl(of, "edit")).Hint("and " + decode.FixWaitForGCS)})
		}
	}
	for _, c := range g.containers() {
		var asks corev1.ResourceRequirements
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(c.Get("resources").Members(), &asks)
		for _, fault := range decode.LimitFaults(ranges, &asks) {
			report(occurrence{Path: c.Get("resources", fault.Section, fault.Resource).Path(),
				Seen: fault.Seen, More: "LimitRange " + fault.Range.Name + ": " + fault.Why,
				Fix: edit("set a limit and a request that the LimitRange allows")})
		}
	}
	shape := landing.PodShape{Requests: landing.Quantities{}, Limits: landing.Quantities{}}
	for _, fault := range decode.UnderDefaults(ranges, g.pod(x), &shape) {
		report(occurrence{Path: g.template().Path("containers"), Seen: fault.Seen,
			More: "LimitRange " + fault.Range.Name + ": " + fault.Why, Fix: edit(decode.FixPodLimits)})
	}
}

// pod returns a group's pod with the containers that the operator adds; an empty one if it cannot be read.
func (g rayGroup) pod(x *inventory) *corev1.Pod {
	var pod corev1.Pod
	if runtime.DefaultUnstructuredConverter.FromUnstructured(g.template().Members(), &pod.Spec) != nil {
		return &corev1.Pod{}
	}
	if g.Workers != nil && x.waitsForGCS() {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Resources: decode.WaitForGCS()})
	}
	if g.Workers == nil && g.Of.raySpec().Flag("enableInTreeAutoscaling") {
		added := corev1.Container{Resources: decode.Sidecar()}
		if own := g.Of.raySpec().Get("autoscalerOptions", "resources"); own.Has() {
			added.Resources = corev1.ResourceRequirements{}
			if runtime.DefaultUnstructuredConverter.FromUnstructured(own.Members(), &added.Resources) != nil {
				return &corev1.Pod{}
			}
		}
		pod.Spec.Containers = append(pod.Spec.Containers, added)
	}
	return &pod
}

// waitsForGCS reports whether the operator adds the init container wait-gcs-ready to workers: it does, unless a
// Deployment of it says otherwise.
func (x *inventory) waitsForGCS() bool {
	return !slices.ContainsFunc(x.programs("kuberay/operator"), func(p program) bool {
		value, _ := env(p.container, "ENABLE_INIT_CONTAINER_INJECTION")
		return strings.EqualFold(value.Text(), "false")
	})
}

// quotaExceeded reports how many pods of a group the quotas of the namespace allow, if that is below its maximum, and
// containers for which one refuses all pods of the group or the head.
func quotaExceeded(x *inventory, g rayGroup, report reporter) {
	quotas, names := inNamespace[corev1.ResourceQuota](x, "ResourceQuota", g.Of)
	if len(quotas) == 0 {
		return
	}
	pods := int64(g.Pods.Max) * int64(max(1, g.Pods.NumOfHosts))
	ranges := limitRanges(x, g.Of)
	pod, head := g.underDefaults(x, ranges), landing.PodShape{}
	for _, of := range g.Of.groups() {
		if of.Workers == nil {
			head = of.underDefaults(x, ranges)
		}
	}
	unstated := decode.Undefaulted(ranges, g.Pods.Unstated)
	for i, quota := range quotas {
		if !decode.QuotaForAllPods(&quota) {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
			hard := quota.Spec.Hard[key]
			if hard.Sign() < 0 {
				continue // object-unreadable reports it
			}
			if silent := decode.UnstatedForQuota(key, unstated); len(silent) > 0 {
				report(occurrence{Path: g.template().Path("containers"), Severity: raydemand.Error,
					Seen: fmt.Sprintf("no %s of %s", key, strings.Join(silent, ", ")),
					Why:  "the API server refuses every pod of the group",
					More: fmt.Sprintf("ResourceQuota %s has %s, so each container has to state it", names[i], key),
					Fix:  edit("set it, or have a LimitRange of the namespace give it by default")})
				continue
			}
			each := decode.TakesOfQuota(key, &pod)
			if each <= 0 || g.Workers == nil {
				continue
			}
			beside := decode.Amount(hard).Plus(-decode.TakesOfQuota(key, &head))
			fit := int64(max(beside, 0) / each)
			if pods <= fit || fit > 0 && g.Workers.Max > mostMaximum {
				continue
			}
			found := occurrence{Path: g.Path("maxReplicas"),
				Seen: fmt.Sprintf("%d, and ResourceQuota %s has %s for %s", g.Workers.Max, names[i], &hard, key),
				More: fmt.Sprintf("at most %d pods of the group beside the head", fit),
				Fix:  edit("lower maxReplicas, or have the quota raised")}
			if fit <= 0 {
				found.Severity = raydemand.Error
			}
			report(found)
		}
	}
}

// underDefaults returns what a pod of the group takes with what LimitRanges give it by default.
func (g rayGroup) underDefaults(x *inventory, ranges []*corev1.LimitRange) landing.PodShape {
	pod := g.Pods.Pod
	if len(ranges) > 0 {
		pod.Requests, pod.Limits = maps.Clone(pod.Requests), maps.Clone(pod.Limits)
		decode.UnderDefaults(ranges, g.pod(x), &pod)
	}
	return pod
}

// claimOfOnePod reports a group of several pods that share a claim of a volume that one pod, or one node, can use.
func claimOfOnePod(x *inventory, g rayGroup, report reporter) {
	pods := int64(g.Workers.Max) * int64(max(1, g.Workers.NumOfHosts))
	for _, volume := range g.template().Items("volumes") {
		name := volume.Get("persistentVolumeClaim", "claimName")
		claim := x.find("PersistentVolumeClaim", g.Of.Namespace, name.Text())
		if claim == nil || pods < 2 {
			continue
		}
		modes := claim.Root().Items("spec", "accessModes")
		if len(modes) != 1 || modes[0].Text() != "ReadWriteOncePod" && modes[0].Text() != "ReadWriteOnce" {
			continue
		}
		found := occurrence{Path: name.Path(), Seen: name.Text() + " of mode " + modes[0].Text(),
			Fix: edit("set maxReplicas to 1, or use a claim of mode ReadWriteMany")}
		if modes[0].Text() == "ReadWriteOnce" {
			found.Severity = raydemand.Info
			found.Why = "the pods that use the claim can run on one node only, so those on others wait for ever"
		}
		report(found)
	}
}
