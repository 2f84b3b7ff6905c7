package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// How the operator makes `ray start` is in docs/reference/facts.md#flags-of-ray-start.

// resourcesNotParsed reports a string from which the operator would derive something of the limits of the group that
// the string, which it cannot parse, does not name itself: the shell that runs `ray start` can read more than it.
func resourcesNotParsed(_ *inventory, g rayGroup, report reporter) {
	v, gpus := g.Get("rayStartParams", "resources"), g.Pods.GPUs
	named := strings.Contains(v.Text(), "TPU") || strings.Contains(v.Text(), "neuron_cores")
	drops := len(gpus.Counted) > 0 && !g.Has("rayStartParams", "num-gpus") || len(gpus.Passed) > 0 && !named
	if gpus.Unparsed && drops {
		report(occurrence{Path: v.Path(), Seen: v.Text(), Fix: edit(`write JSON in single quotes: '{"name": 1}'`)})
	}
}

func memoryLimitAbsent(_ *inventory, g rayGroup, report reporter) {
	c := g.rayContainer()
	declared := g.Has("rayStartParams", "memory") || g.hasResource("memory")
	limited := c.Has("resources", "limits", "memory") || g.template().Has("resources", "limits", "memory")
	if !c.Has() || declared || limited {
		return
	}
	limit, request := c.Path("resources", "limits", "memory"), c.Get("resources", "requests", "memory")
	found := occurrence{Path: limit, Fix: set(limit, "8Gi").Hint("replace 8Gi with what the pod needs")}
	if request.Has() {
		found.Seen, found.Fix = "request "+request.String()+", no limit", set(limit, request.Raw())
	}
	report(found)
}

// cpuAbsent reports a group for which nothing says how many CPUs it has. Ray's own autoscaler raises ValueError then,
// also for the head (Ray 2.60, autoscaling_config.py, _get_num_cpus); otherwise the head may have those of its node.
func cpuAbsent(_ *inventory, g rayGroup, report reporter) {
	c := g.rayContainer()
	_, known := g.Pods.Resources[raydemand.CPU]
	declared := g.Has("rayStartParams", "num-cpus") || c.Has("resources", "limits", "cpu") ||
		c.Has("resources", "requests", "cpu") || g.hasResource("cpu")
	ownCommand := len(g.Pods.Resources) == 0 && len(c.Items("command")) > 0
	rays := g.Of.raysAutoscaler()
	if !c.Has() || g.Pods.Broken || declared || !rays && (g.Workers == nil || known || ownCommand) {
		return
	}
	request := c.Path("resources", "requests", "cpu")
	found := occurrence{Path: request, Fix: set(request, "4").Hint("replace 4 with what the pod needs")}
	if !rays {
		found.Severity = raydemand.Warning
		found.Why = "Ray counts the CPUs of the whole node, and Ray's own autoscaler would fail on such a group"
	}
	report(found)
}

func headTakesWork(_ *inventory, g rayGroup, report reporter) {
	scaled := g.Of.Cluster.InTreeAutoscaling || g.Of.Mode() == nodepool.Managed || g.Of.Mode() == nodepool.Shadow
	if g.Has("rayStartParams", "num-cpus") || g.hasResource("cpu") || len(g.Of.Cluster.Groups) == 0 || !scaled {
		return
	}
	at := g.Path("rayStartParams", "num-cpus")
	report(occurrence{Path: at, Fix: set(at, "0")})
}

func gpuUncounted(x *inventory, g rayGroup, report reporter) {
	resources := g.Workers.Resources
	if _, counted := resources[raydemand.GPU]; counted || len(resources) == 0 || g.hasAccelerator() {
		return
	}
	count, names, problem := g.Workers.Devices(x.Input.Reader)
	coresAlone := len(names) == 1 && names[0] == gpuinfo.AliyunCores // another check
	if problem != "" || count <= 0 || coresAlone {
		return
	}
	found := occurrence{Path: g.Path("rayStartParams", "num-gpus"),
		Seen: names[0] + ": " + g.rayContainer().Get("resources", "limits", names[0]).String(),
		Fix:  declareGPUs(g, count.String())}
	if share := g.Workers.Pod.Share; share != nil && !g.requestsGPU() {
		found.Seen = names[0] + ": " + share.Value
		found.More = "KAI gives the pod a part of a card, which Ray counts as a GPU once the pod runs"
	}
	report(found)
}

// declareGPUs declares how many GPUs a worker has, in the field that the group uses for such things.
func declareGPUs(g rayGroup, count string) fix {
	at := g.Path("rayStartParams", "num-gpus")
	if len(g.Keys("resources")) > 0 {
		at = g.Path("resources", raydemand.GPU)
	}
	return set(at, count)
}

func numGPUsDiffers(x *inventory, g rayGroup, report reporter) {
	declared, at, ok := g.declaredGPUs()
	name, derived := g.wholeGPUs()
	if ok && declared > 0 && !x.anyNode && !g.mayHaveGPUs() && !g.requestsDevices() {
		report(occurrence{Path: at, Seen: fmt.Sprintf("%d declared, no limit", declared),
			Fix: edit("set the limit nvidia.com/gpu, or remove the number")})
		return
	}
	if ok && name != "" && declared >= 0 && declared != derived && !g.Workers.OneOfInstances() {
		report(occurrence{Path: at, Seen: fmt.Sprintf("%d declared, limit %s: %d", declared, name, derived),
			Fix: set(at, strconv.FormatInt(derived, 10))})
	}
}

func headGPU(_ *inventory, g rayGroup, report reporter) {
	for _, r := range g.gpuRequests() {
		if q, ok := quantity(r.Limit); ok && q.Sign() > 0 && r.isDevices() && len(g.Of.Cluster.Groups) > 0 {
			patch := patch(r.changes(nil)...)
			report(shows(r.Limit, patch.Hint("if no work needs to run on the head")))
			return
		}
	}
	declared, at, ok := g.declaredGPUs()
	if name, _ := g.wholeGPUs(); ok && declared > 0 && name == "" {
		report(occurrence{Path: at, Seen: fmt.Sprint(declared), More: "and its pod has none",
			Fix: set(at, "0")})
	}
}

func claimUncounted(x *inventory, g rayGroup, report reporter) {
	_, counted := g.Workers.Resources[raydemand.GPU]
	if counted || g.declaresGPUs() || g.hasAccelerator() || g.requestsGPU() {
		return
	}
	limits := g.rayContainer().Get("resources", "limits")
	for _, name := range limits.Keys() {
		limit := limits.Get(name)
		class, isClass := strings.CutPrefix(name, gpuinfo.ClassPrefix)
		if n, _ := quantity(limit); isClass && gpuinfo.ClassNamesGPU(class) && n.Sign() > 0 {
			report(occurrence{Path: limit.Path(), Seen: limit.String(), Fix: declareGPUs(g, limit.String())})
			return
		}
	}
	for _, used := range g.rayContainer().Items("resources", "claims") {
		for _, claim := range g.template().Items("resourceClaims") {
			if claim.Text("name") != used.Text("name") {
				continue
			}
			if claimsGPUs(x, g.Of.Namespace, claim) {
				report(occurrence{Path: used.Path(), Seen: "claim " + used.Text("name"),
					Fix: declareGPUs(g, "1").Hint("replace 1 with as many as the claim gets")})
				return
			}
		}
	}
}

// claimsGPUs reports whether a pod's claim requests GPUs. If neither the ResourceClaim nor the ResourceClaimTemplate is
// among the objects, the names decide: the claim may be for a network card. A template has the spec of the claim inside
// its own. In v1 a request has its class below exactly or firstAvailable, and before v1 directly.
func claimsGPUs(x *inventory, namespace string, claim fieldpath.Value) bool {
	o := x.claim(namespace, claim)
	if o == nil {
		return gpuinfo.ClassNamesGPU(claim.Text("name")) || gpuinfo.ClassNamesGPU(claim.Text("resourceClaimName")) ||
			gpuinfo.ClassNamesGPU(claim.Text("resourceClaimTemplateName"))
	}
	requests := append(o.Root().Items("spec", "devices", "requests"),
		o.Root().Items("spec", "spec", "devices", "requests")...)
	return slices.ContainsFunc(requests, func(request fieldpath.Value) bool {
		class := request.Text("deviceClassName") + request.Text("exactly", "deviceClassName")
		if first := request.Items("firstAvailable"); len(first) > 0 {
			class = first[0].Text("deviceClassName")
		}
		return gpuinfo.ClassNamesGPU(class)
	})
}

// acceleratorUncounted reports accelerators that Ray does not call GPU, and of which a new pod announces none.
func acceleratorUncounted(_ *inventory, g rayGroup, report reporter) {
	if len(g.Workers.Resources) == 0 {
		return // what the pods announce is unknown
	}
	limits := g.Workers.GPUs.Limits
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		accelerator, is := gpuinfo.AcceleratorOf(name)
		counted := is && g.Workers.Resources[accelerator.Ray] > 0
		if !is || accelerator.Passed || counted || limits[name] <= 0 {
			continue
		}
		units := "one " + accelerator.Ray + " for each device"
		if accelerator.Ray == "neuron_cores" {
			units = "as many " + accelerator.Ray + " as the devices have, 2 each on Trainium 1 and Inferentia 2"
		}
		limit := g.rayContainer().Get("resources", "limits", name)
		report(occurrence{Path: limit.Path(), Seen: limit.String(), More: "Ray's name for them is " + accelerator.Ray,
			Fix: edit("declare " + units + " in rayStartParams.resources")})
		return
	}
}
