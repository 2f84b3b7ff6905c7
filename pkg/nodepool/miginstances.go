package nodepool

import (
	"fmt"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// MIGGPUsAnnotation sets on a RayCluster how many GPUs a pod with several MIG instances has for the plan: all or one,
// for all groups or in a JSON object by group.
const MIGGPUsAnnotation = "heliostat.dev/mig-gpus-per-pod"

// MIGGPUs says how many GPUs a pod with several MIG instances has.
type MIGGPUs string

// MIGAll, which is also the meaning of the empty value, counts each instance, as KubeRay and Ray do. MIGOne counts one:
// a CUDA process uses one instance, however many its container has (docs/reference/facts.md#instances-of-a-process).
const (
	MIGAll MIGGPUs = "all"
	MIGOne MIGGPUs = "one"
)

// Valid reports whether m is one of the two values.
func (m MIGGPUs) Valid() bool { return m == MIGAll || m == MIGOne }

// MIGInstancesSeveral is the code of the finding that a pod gets several MIG instances, of which a process uses one.
const MIGInstancesSeveral = "mig-instances-several"

// MIGInstances returns how many MIG instances the Ray container of a pod gets: by the nodes where the pod fits or,
// without any, by the names of the resources.
func (g *WorkerGroup) MIGInstances() int64 {
	if g.Reported != nil && g.Reported.Instances > 0 {
		return g.Reported.Instances
	}
	return namedInstances(gpuinfo.Names{}, g.GPUs.Limits)
}

// namedInstances counts the instances that are requested under names of their own.
func namedInstances(names gpuinfo.Names, limits map[string]raydemand.Amount) (n int64) {
	for name, amount := range limits {
		resource, err := names.Resource(name)
		if err == nil && resource.Profile != "" && !resource.Shared && amount > 0 {
			n += int64(amount / raydemand.One)
		}
	}
	return n
}

// oneOfInstances reports whether a pod has several MIG instances and is to be planned as one GPU.
func (g *WorkerGroup) oneOfInstances() bool { return g.MIGGPUs == MIGOne && g.MIGInstances() > 1 }

// PlannedResources returns what a new pod of the group is planned to have: what it reports to Ray, and one GPU if its
// MIG instances are to count as one. The caller must not change it.
func (g *WorkerGroup) PlannedResources() raydemand.Bundle {
	if !g.oneOfInstances() || g.rayGPUs() <= raydemand.One {
		return g.Resources
	}
	planned := g.Resources.Clone()
	planned[raydemand.GPU] = raydemand.One
	return planned
}

// MIGInstancesFinding reports that a pod gets several MIG instances; false if it does not, or if they are planned as
// one GPU. The caller sets Object.
func (g *WorkerGroup) MIGInstancesFinding() (raydemand.Finding, bool) {
	n := g.MIGInstances()
	if n <= 1 || g.MIGGPUs == MIGOne {
		return raydemand.Finding{}, false
	}
	return raydemand.Finding{
		Code: MIGInstancesSeveral, Severity: raydemand.Warning,
		Field: fmt.Sprintf("spec.workerGroupSpecs[%d].template.spec.containers[0].resources.limits", g.Index),
		Seen:  fmt.Sprintf("%d MIG instances", n),
		Why: fmt.Sprintf("a CUDA process uses one MIG instance, and Ray assigns the numbers 0 to %d to its tasks, of "+
			"which only 0 is a device; so of the %d GPUs of a worker of group %s, tasks can use one, and the plan "+
			"counts what the worker reports to Ray", n-1, n, g.Name),
		Fix: fmt.Sprintf("request one instance in each pod, and raise maxReplicas instead; or annotate %s: %s, which "+
			"plans such a pod as one GPU", MIGGPUsAnnotation, MIGOne),
	}, true
}
