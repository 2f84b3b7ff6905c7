package doctor

import (
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// claims are checks of devices that come by Dynamic Resource Allocation, in claims instead of limits.
var claims = []Check{
	{
		Code: "claim-uncounted", Severity: raydemand.Warning,
		Why: "neither the operator nor Ray's autoscaler counts GPUs that come by a DRA claim (kuberay #3527), so nothing that asks for a GPU ever starts the " +
			"group, and its workers announce none",
		look: perWorkers(func(x *exam, g group, tell func(sight)) {
			if _, counted := g.workers.Resources[raydemand.GPU]; counted || g.declaresGPUs() || g.accelerated() || g.asksForGPU() {
				return
			}
			for _, used := range g.ray().get("resources", "claims").items() {
				for _, claim := range g.template().get("resourceClaims").items() {
					if claim.get("name").text() != used.get("name").text() {
						continue
					}
					if devices, isGPU := x.claimed(g.of.Namespace, claim); isGPU {
						tell(sight{of: g.of, at: used.at, seen: "claim " + used.get("name").text(), fix: g.declare(strconv.FormatInt(devices, 10)).
							hint("as many as the claim gets")})
						return
					}
				}
			}
		}),
	},
}

// claimed is how many GPUs a pod's claim asks for: by the ResourceClaim or ResourceClaimTemplate where it is among the objects, else one where a name
// of the claim speaks of GPUs. A claim may as well be of a network card.
func (x *exam) claimed(namespace string, claim value) (devices int64, isGPU bool) {
	for kind, key := range map[string]string{"ResourceClaim": "resourceClaimName", "ResourceClaimTemplate": "resourceClaimTemplateName"} {
		if o := x.claims[claimKey{kind, namespace, claim.get(key).text()}]; o != nil {
			return gpusRequested(o.root().get("spec"))
		}
	}
	for _, name := range []string{"name", "resourceClaimName", "resourceClaimTemplateName"} {
		isGPU = isGPU || namesGPU(claim.get(name).text())
	}
	return 1, isGPU
}

// gpusRequested adds up the requests of GPUs in the spec of a claim, or of a template, which has that of the claim inside; 1 where their number is known
// only once they are allocated. In v1 a request's class stands below exactly or firstAvailable, before it stood in the request.
func gpusRequested(spec value) (devices int64, isGPU bool) {
	if inner := spec.get("spec"); inner.has() {
		spec = inner
	}
	for _, request := range spec.get("devices", "requests").items() {
		exact := request
		if v := request.get("exactly"); v.has() {
			exact = v
		}
		if first := request.get("firstAvailable").items(); len(first) > 0 {
			exact = first[0]
		}
		if !namesGPU(exact.get("deviceClassName").text()) {
			continue
		}
		n := int64(1)
		if q, ok := exact.get("count").quantity(); ok && q.Sign() > 0 {
			n = q.Value()
		}
		devices, isGPU = devices+n, true
	}
	return devices, isGPU
}

// namesGPU reports whether a name speaks of GPUs: classes are called gpu.nvidia.com, mig.nvidia.com, gpu.amd.com, gpu.intel.com.
func namesGPU(name string) bool {
	return strings.Contains(name, "gpu") || strings.HasPrefix(name, "mig.") || strings.HasPrefix(name, "mig-")
}
