package sharing

import (
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// Three suppliers give a pod what it requests under the name of an extended resource. Who supplies a name decides what
// it means that a node does not announce it:
//
//	a device plugin         nodes announce the name; a node that does not has none
//	a DeviceClass           ResourceSlices offer devices, and the scheduler makes a claim for the pod
//	an extender             nodes bound nothing: an extender of the scheduler counts the name
//
// Without DeviceClasses, it is unknown which names they supply, so a node that does not announce a name proves nothing.

// byExtender are the names that HAMi's chart gives its scheduler extender as ignoredByScheduler, without those that
// device plugins announce as well (docs/reference/facts.md#hami-resources).
var byExtender = map[string]bool{
	gpuinfo.HAMiMemory: true, gpuinfo.HAMiMemoryPercentage: true, gpuinfo.HAMiCores: true,
	"nvidia.com/priority": true, "nvidia.com/remote-gpu-memory": true,
	"amd.com/gpumem": true, "amd.com/gpucores": true, "alibaba.com/ppu-memory": true, "alibaba.com/gpu-core": true,
	"hygon.com/dcumem": true, "hygon.com/dcucores": true, "hygon.com/hcumem": true, "hygon.com/hcucores": true,
	"metax-tech.com/vcore": true, "metax-tech.com/vmemory": true, "kunlunxin.com/vxpu-memory": true,
	"enflame.com/vgcu-percentage": true, "enflame.com/gcu-memory": true, "enflame.com/gcu-core": true,
}

// ByExtender reports whether an extender of the scheduler counts a resource. Ascend's names include the chip, as
// huawei.com/Ascend910B4-memory does.
func ByExtender(name string) bool {
	return byExtender[name] || strings.HasPrefix(name, "huawei.com/Ascend") &&
		(strings.HasSuffix(name, "-memory") || strings.HasSuffix(name, "-core"))
}

// SuppliedElsewhere returns the resources that nodes do not bound, as the configuration says; nil if there are none.
func (g Reader) SuppliedElsewhere() map[string]bool {
	var names map[string]bool
	for _, resource := range g.Names.Configured {
		if resource.Kind == gpuinfo.Elsewhere {
			if names == nil {
				names = map[string]bool{}
			}
			names[resource.Name] = true
		}
	}
	return names
}

// MayBeClass reports whether a DeviceClass can supply a name: it is that of an extended resource
// (k8s.io/kubernetes v1.36, pkg/scheduler/util, IsDRAExtendedResourceName).
func MayBeClass(name string) bool {
	domain, _, qualified := strings.Cut(name, "/")
	native := domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io")
	return qualified && (!native || strings.HasPrefix(name, gpuinfo.ClassPrefix))
}

// TemplateOf returns the ResourceClaimTemplate of a resource, as namespace/name, and whether it stands for one.
func TemplateOf(resource string) (template string, is bool) {
	name, is := strings.CutPrefix(resource, gpuinfo.ClaimPrefix)
	return strings.Replace(name, ".", "/", 1), is
}
