package doctor

import (
	"strings"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// gpuKinds are checks of what a worker gets under the names that it asks for. Those that need nodes are made by package nodepool, and plans tell them
// under the same codes.
var gpuKinds = []Check{
	{
		Code: "gpu-two-resources", Severity: raydemand.Warning,
		Why: "a pod gets devices of both, and the operator counts those of the first name only: the others are paid for and idle",
		look: perWorkers(func(_ *exam, g group, tell func(sight)) {
			var asks []gpuAsk
			for _, c := range g.asks() {
				q, ok := c.limit.quantity()
				if ok && q.Sign() > 0 && strings.HasPrefix(c.name, "nvidia.com/") && c.isDevices(c.name) && c.container.at.String() == g.ray().at.String() {
					asks = append(asks, c)
				}
			}
			if len(asks) < 2 || strings.HasPrefix(asks[0].name, migPrefix) && strings.HasPrefix(asks[len(asks)-1].name, migPrefix) {
				return // profiles are told of by mig-two-profiles
			}
			var names []string
			var ops []op
			for i, c := range asks {
				names = append(names, c.name)
				if i == 0 {
					continue
				}
				ops = append(ops, remove(c.limit.at))
				if c.request.has() {
					ops = append(ops, remove(c.request.at))
				}
			}
			tell(sight{of: g.of, at: g.ray().get("resources", "limits").at, seen: strings.Join(names, ", "),
				fix: g.patch(ops...).hint("or give each of them a group of its own")})
		}),
	},
	{
		Code: nodepool.NumGPUsMismatch, Severity: raydemand.Warning,
		Why:  "a new worker tells Ray another number of GPUs than the device plugin gives it, so tasks with num_gpus are placed by a wrong number",
		look: perReported(nodepool.NumGPUsMismatch),
	},
	{
		Code: nodepool.GPUSharesSeveral, Severity: raydemand.Warning,
		Why:  "several shares are not more of a GPU",
		look: perReported(nodepool.GPUSharesSeveral),
	},
	{
		Code: podfit.GPUSlicesDiffer, Severity: raydemand.Warning,
		Why: "the nodes that the group could land on hand out different things under one name",
		look: perWorkers(func(x *exam, g group, tell func(sight)) {
			if g.workers.Pod.Claims || len(x.nodes) == 0 {
				return
			}
			for _, answer := range podfit.SlicesOf(x.input.Reader, &g.workers.Pod, x.placesFor(g)) {
				if f, differ := answer.DifferFinding(); differ {
					tell(sight{of: g.of, at: g.ray().get("resources", "limits", answer.Resource).at, seen: f.Seen, why: f.Why, fix: g.of.edit(f.Fix)})
				}
			}
		}),
	},
}

// perReported tells what the nodes say about the number of GPUs of a group's workers.
func perReported(code string) func(*exam, func(sight)) {
	return perWorkers(func(x *exam, g group, tell func(sight)) {
		if len(x.nodes) == 0 || g.workers.Broken {
			return
		}
		workers := *g.workers
		workers.Reported = nodepool.Reported(x.input.Reader, &workers, x.placesFor(g))
		for _, f := range workers.NumGPUsFindings(workers.NumGPUs(nodepool.RayGPUs{})) {
			if f.Code != code {
				continue
			}
			s := sight{of: g.of, at: g.ray().get("resources", "limits").at, seen: f.Seen, why: f.Why, fix: g.of.edit(f.Fix)}
			if code == nodepool.NumGPUsMismatch {
				section, key, _ := strings.Cut(workers.GPUs.Field, ".")
				s.at = g.at.then(section, key)
				if workers.GPUs.Fixed == "" {
					s.fix = g.declare(workers.Reported.Value.String())
				}
			}
			tell(s)
		}
	})
}

// saidOfGroup reports whether one of these of the same object tells of the same wrong number by the spec alone, with what is wrong in it.
func saidOfGroup(ofObject []sight, s sight) bool {
	if s.check.Code != nodepool.NumGPUsMismatch {
		return false
	}
	for _, other := range ofObject {
		switch other.check.Code {
		case "num-gpus-differs", "gpu-uncounted", "gpu-shares-counted", "claim-uncounted", "mig-two-profiles", "gpu-two-resources", "gpu-outside-ray-container",
			"resources-not-parsed", "gpu-resource-unknown", nodepool.GPUSharesSeveral, "gpu-not-whole":
			if strings.HasPrefix(other.at.String()+".", s.at[:len(s.at)-2].String()+".") {
				return true
			}
		}
	}
	return false
}
