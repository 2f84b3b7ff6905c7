package doctor

import (
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func claimUncounted(x *inventory, g rayGroup, report reporter) {
	_, counted := g.Workers.Resources[raydemand.GPU]
	if counted || g.declaresGPUs() || g.hasAccelerator() || g.requestsGPU() {
		return
	}
	for _, used := range g.rayContainer().Items("resources", "claims") {
		for _, claim := range g.template().Items("resourceClaims") {
			if claim.Text("name") != used.Text("name") {
				continue
			}
			if devices, isGPU := claimedGPUs(x, g.Of.Namespace, claim); isGPU {
				report(occurrence{Object: g.Of, Path: used.Path(), Seen: "claim " + used.Text("name"),
					Fix: declareGPUs(g, strconv.FormatInt(devices, 10)).Hint("as many as the claim gets")})
				return
			}
		}
	}
}

// claimedGPUs returns how many GPUs a pod's claim requests. If neither the ResourceClaim nor the ResourceClaimTemplate
// is among the objects, the names decide: the claim may be for a network card.
func claimedGPUs(x *inventory, namespace string, claim fieldpath.Value) (devices int64, isGPU bool) {
	if o := x.claim(namespace, claim); o != nil {
		return gpusRequested(o.Root().Get("spec"))
	}
	for _, name := range []string{"name", "resourceClaimName", "resourceClaimTemplateName"} {
		isGPU = isGPU || namesGPU(claim.Text(name))
	}
	return 1, isGPU
}

// gpusRequested adds up the GPUs that the spec of a claim requests, or of a template, which has that of the claim
// inside. It counts 1 if their number is known only after allocation. In v1 a request has its class below exactly or
// firstAvailable, and before v1 directly.
func gpusRequested(spec fieldpath.Value) (devices int64, isGPU bool) {
	if inner := spec.Get("spec"); inner.Has() {
		spec = inner
	}
	for _, request := range spec.Items("devices", "requests") {
		exact := request
		if v := request.Get("exactly"); v.Has() {
			exact = v
		}
		if first := request.Items("firstAvailable"); len(first) > 0 {
			exact = first[0]
		}
		if !namesGPU(exact.Text("deviceClassName")) {
			continue
		}
		n := int64(1)
		if q, ok := quantity(exact.Get("count")); ok && q.Sign() > 0 {
			n = q.Value()
		}
		devices, isGPU = devices+n, true
	}
	return devices, isGPU
}

// namesGPU reports whether a name is that of GPUs. Classes are gpu.nvidia.com, mig.nvidia.com, gpu.amd.com and
// gpu.intel.com.
func namesGPU(name string) bool {
	return strings.Contains(name, "gpu") || strings.HasPrefix(name, "mig.") || strings.HasPrefix(name, "mig-")
}
