package doctor

import (
	"errors"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// gpuAmounts are checks of how many GPUs a container asks for. The API server's rules for extended resources are in its
// ValidateContainerResources: whole numbers, and no request that differs from the limit.
var gpuAmounts = []Check{
	{
		Code: podfit.GPUAmountImpossible, Severity: raydemand.Error,
		Why: "no node can have so many, so no pod of the group is ever placed",
		look: perWorkers(func(x *exam, g group, tell func(sight)) {
			for _, f := range podfit.CheckGPUs(x.input.Reader, &g.workers.Pod) {
				if f.Code != podfit.GPUAmountImpossible {
					continue
				}
				at := g.ray().get("resources", "limits", f.Field).at
				if label := g.get("template", "metadata", "labels", f.Field); label.has() {
					at = label.at
				}
				tell(sight{of: g.of, at: at, seen: f.Seen, why: f.Why, fix: g.of.edit(f.Fix)})
			}
		}),
	},
	{
		Code: "gpu-requests-only", Severity: raydemand.Error,
		Why: "a GPU needs a limit, so the API server refuses every pod of the group, and the operator stops at the first such group",
		look: perGPU(func(c gpuAsk, tell func(sight)) {
			if c.request.has() && !c.limit.has() {
				c.tell(tell, c.request, c.patch(c.of.set(c.limit.at, c.request.raw)))
			}
		}),
	},
	{
		Code: "gpu-limit-differs", Severity: raydemand.Error,
		Why: "GPUs cannot be overcommitted, so request and limit must be equal; the API server refuses every pod of the group",
		look: perGPU(func(c gpuAsk, tell func(sight)) {
			request, requested := c.request.quantity()
			limit, limited := c.limit.quantity()
			if requested && limited && request.Cmp(limit) != 0 {
				tell(sight{of: c.of, at: c.request.at, seen: "request " + c.request.String() + ", limit " + c.limit.String(),
					fix: c.patch(op{Op: "replace", At: c.request.at, Value: c.limit.raw})})
			}
		}),
	},
	{
		Code: "gpu-not-whole", Severity: raydemand.Error,
		Why: "Kubernetes hands out whole units of a GPU resource; the API server refuses every pod of the group. A part of a card is a resource of " +
			"its own: a MIG profile, a shared name, gpu-mem",
		look: perGPU(func(c gpuAsk, tell func(sight)) {
			limit, ok := c.limit.quantity()
			if !ok || limit.Sign() >= 0 && limit.MilliValue()%1000 == 0 {
				return
			}
			to := "1"
			if limit.Sign() > 0 {
				limit.RoundUp(0)
				to = limit.String()
			}
			ops := []op{{Op: "replace", At: c.limit.at, Value: to}}
			if c.request.has() {
				ops = append(ops, op{Op: "replace", At: c.request.at, Value: to})
			}
			c.tell(tell, c.limit, c.patch(ops...))
		}),
	},
	{
		Code: "gpu-outside-ray-container", Severity: raydemand.Warning,
		Why: "Ray counts the GPUs of the first container only, whatever its name: this one's are reserved, and no task of Ray's ever gets them",
		look: perGPU(func(c gpuAsk, tell func(sight)) {
			limit, ok := c.limit.quantity()
			first := c.ray().get("resources", "limits", c.name)
			// An init container may well look at the GPU that the Ray container gets after it.
			lent := first.has() && strings.Contains(c.limit.at.String(), ".initContainers[")
			if ok && limit.Sign() > 0 && c.container.at.String() != c.ray().at.String() && c.isDevices(c.name) && !lent {
				ops := []op{c.of.set(first.at, c.limit.raw), remove(c.limit.at)}
				if c.request.has() {
					ops = append(ops, remove(c.request.at))
				}
				c.tell(tell, c.limit, c.patch(ops...))
			}
		}),
	},
}

// gpuAsk is one GPU resource of one container, with its limit and request, of which one may be absent.
type gpuAsk struct {
	group
	container      value
	name           string
	limit, request value
}

func (c gpuAsk) tell(tell func(sight), v value, fix remedy) {
	tell(sight{of: c.of, at: v.at, seen: v.String(), fix: fix})
}

// perGPU looks at each GPU resource that a container names, in limits or requests. Names that no table has count too.
func perGPU(look func(gpuAsk, func(sight))) func(*exam, func(sight)) {
	return perGroup(func(_ *exam, g group, tell func(sight)) {
		for _, ask := range g.asks() {
			look(ask, tell)
		}
	})
}

func (g group) asks() []gpuAsk {
	var asks []gpuAsk
	for _, c := range g.containers() {
		limits, requests := c.get("resources", "limits"), c.get("resources", "requests")
		names := limits.keys()
		for _, name := range requests.keys() {
			if !limits.get(name).has() {
				names = append(names, name)
			}
		}
		for _, name := range names {
			if isGPU(g.gpuNames, name) {
				asks = append(asks, gpuAsk{group: g, container: c, name: name, limit: limits.get(name), request: requests.get(name)})
			}
		}
	}
	return asks
}

// isGPU reports whether the name speaks of a GPU, known or not.
func isGPU(names gpuinfo.Names, name string) bool {
	_, err := names.Resource(name)
	return err == nil || errors.Is(err, gpuinfo.ErrUnknownResource)
}

// isDevices reports whether units of the resource are devices: cards, instances or shares.
func (g group) isDevices(name string) bool {
	r, err := g.gpuNames.Resource(name)
	return err == nil && r.Role == gpuinfo.Devices
}
