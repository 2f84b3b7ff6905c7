package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// numGPUs are checks of how many GPUs Ray believes a node to have: what the spec declares, what follows from the pod's limits, and what pods
// were started with (docs/reference/facts.md#flags-of-ray-start).
var numGPUs = []Check{
	{
		Code: "gpu-uncounted", Severity: raydemand.Warning,
		Why: "neither the operator nor Ray's autoscaler counts GPUs by this name, so nothing that asks for a GPU ever starts the group",
		look: perWorkers(func(_ *exam, g group, tell func(sight)) {
			said := g.workers.Resources
			if _, counted := said[raydemand.GPU]; counted || len(said) == 0 || g.accelerated() {
				return
			}
			for _, c := range g.asks() {
				q, ok := c.limit.quantity()
				r, err := c.gpuNames.Resource(c.name)
				if c.container.at.String() != g.ray().at.String() || !ok || q.Sign() <= 0 || err != nil || r.Role == gpuinfo.Cores || r.Role == gpuinfo.Information {
					continue
				}
				count := "1"
				if r.Role == gpuinfo.Devices {
					count = fmt.Sprint(q.Value())
				}
				tell(sight{of: g.of, at: g.at.then("rayStartParams", "num-gpus"), seen: c.name + ": " + c.limit.String(), fix: g.declare(count)})
				return
			}
		}),
	},
	{
		Code: "ray-autoscaler-differs", Severity: raydemand.Warning,
		Why: "the operator counts this MIG profile as GPUs, Ray's own autoscaler does not: it never starts the group for what asks for a GPU",
		look: perWorkers(func(_ *exam, g group, tell func(sight)) {
			image := g.of.spec().get("autoscalerOptions", "image").text()
			if !g.of.Cluster.InTreeAutoscaling || strings.Contains(image, "heliostat") || g.declaresGPUs() || g.workers.Resources[raydemand.GPU] == 0 {
				return
			}
			limits := g.ray().get("resources", "limits")
			endsWithGPU := func(name string) bool {
				q, _ := limits.get(name).quantity()
				return strings.HasSuffix(name, "gpu") && !q.IsZero()
			}
			isMIG := func(name string) bool { return strings.HasPrefix(name, migPrefix) }
			if at := slices.IndexFunc(limits.keys(), isMIG); at >= 0 && !slices.ContainsFunc(limits.keys(), endsWithGPU) {
				name := limits.keys()[at]
				tell(sight{of: g.of, at: limits.get(name).at, seen: limits.get(name).String(), fix: g.declare(g.workers.Resources[raydemand.GPU].String())})
			}
		}),
	},
	{
		Code: "num-gpus-differs", Severity: raydemand.Warning,
		Why: "Ray takes the declared number and the pod gets the other: tasks find no GPU where there are too few, and cards stay idle where there " +
			"are too many",
		look: perWorkers(func(_ *exam, g group, tell func(sight)) {
			declared, at, ok := g.declaredGPUs()
			name, derived := g.wholeGPUs()
			if ok && name != "" && declared >= 0 && declared != derived {
				to := any(strconv.FormatInt(derived, 10))
				tell(sight{of: g.of, at: at, seen: fmt.Sprintf("%d declared, limit %s: %d", declared, name, derived),
					fix: g.patch(op{Op: "replace", At: at, Value: to})})
			}
		}),
	},
	{
		Code: "num-gpus-running-differs", Severity: raydemand.Info,
		Why: "pods that are older than the change announce what they were started with until they are replaced, so a group holds both kinds",
		look: perWorkers(func(x *exam, g group, tell func(sight)) {
			now, known := g.workers.Resources[raydemand.GPU]
			if !known {
				return
			}
			for _, pod := range x.podsOf(g.of, g.name) {
				container := value{}
				if all := pod.root().get("spec", "containers").items(); len(all) > 0 {
					container = all[0]
				}
				command, _ := env(container, "KUBERAY_GEN_RAY_START_CMD")
				then := startedWith.FindStringSubmatch(command.text())
				if then != nil && then[1] != now.String() {
					tell(sight{of: pod, path: "spec.containers[0].env.KUBERAY_GEN_RAY_START_CMD", seen: "--num-gpus=" + then[1] + ", and " + now.String() + " in the spec",
						fix: run(pod.kubectl("delete")).hint("once it is idle; the operator makes a new one")})
				}
			}
		}),
	},
	{
		Code: "head-gpu", Severity: raydemand.Warning,
		Why: "the head never goes, so its GPU is paid for as long as the cluster stands, and a task on it can take the whole cluster down",
		look: perGroup(func(_ *exam, g group, tell func(sight)) {
			if g.workers != nil {
				return
			}
			for _, c := range g.asks() {
				if q, ok := c.limit.quantity(); ok && q.Sign() > 0 && c.isDevices(c.name) && len(g.of.Cluster.Groups) > 0 {
					ops := []op{remove(c.limit.at)}
					if c.request.has() {
						ops = append(ops, remove(c.request.at))
					}
					tell(sight{of: g.of, at: c.limit.at, seen: c.limit.String(), fix: g.patch(ops...).hint("if no work needs to run on the head")})
					return
				}
			}
			declared, at, ok := g.declaredGPUs()
			if name, _ := g.wholeGPUs(); ok && declared > 0 && name == "" {
				tell(sight{of: g.of, at: at, seen: fmt.Sprint(declared), more: "and its pod has none",
					fix: g.patch(op{Op: "replace", At: at, Value: "0"})})
			}
		}),
	},
}

var startedWith = regexp.MustCompile(`--num-gpus=(\d+)`)

// declaredGPUs is num-gpus of rayStartParams, or GPU in the group's field resources, which goes before it. ok is false where neither is a
// whole number.
func (g group) declaredGPUs() (n int64, at place, ok bool) {
	for _, name := range g.get("resources").keys() {
		if q, isNumber := g.get("resources", name).quantity(); isNumber && strings.EqualFold(name, raydemand.GPU) {
			return q.Value(), g.get("resources", name).at, q.MilliValue()%1000 == 0
		}
	}
	v := g.get("rayStartParams", "num-gpus")
	n, err := strconv.ParseInt(v.text(), 10, 64)
	return n, v.at, err == nil
}

// declaresGPUs reports whether the group says how many GPUs it has, rightly or wrongly.
func (g group) declaresGPUs() bool {
	_, _, declared := g.declaredGPUs()
	return declared || g.get("rayStartParams", "num-gpus").has()
}

// declare is the command that says how many GPUs a worker has, where the group says such things already.
func (g group) declare(count string) remedy {
	if len(g.get("resources").keys()) > 0 {
		return g.patch(g.of.set(g.get("resources", raydemand.GPU).at, count))
	}
	return g.patch(g.of.set(g.get("rayStartParams", "num-gpus").at, count))
}

// wholeGPUs is the one resource of the Ray container whose units are GPUs for Ray, and its limit; none where there are several or the
// container has other resources that make parts of them.
func (g group) wholeGPUs() (name string, limit int64) {
	for _, c := range g.asks() {
		q, ok := c.limit.quantity()
		if c.container.at.String() != g.ray().at.String() || !ok || q.Sign() <= 0 {
			continue
		}
		whole := c.name == gpuinfo.NvidiaGPU || c.name == "amd.com/gpu" || strings.HasPrefix(c.name, migPrefix)
		if !whole || name != "" || q.MilliValue()%1000 != 0 {
			return "", 0
		}
		name, limit = c.name, q.Value()
	}
	return name, limit
}
