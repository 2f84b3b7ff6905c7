package doctor

import (
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// The API server's rules for extended resources are in its ValidateContainerResources: whole numbers, and no request
// that differs from the limit.

func gpuAmountImpossible(x *inventory, g rayGroup, report reporter) {
	for _, f := range landing.CheckGPUs(x.Input.Reader, &g.Workers.Pod) {
		if f.Code != landing.GPUAmountImpossible {
			continue
		}
		at := g.rayContainer().Path("resources", "limits", f.Field)
		if g.Has("template", "metadata", "labels", f.Field) {
			at = g.Path("template", "metadata", "labels", f.Field)
		}
		report(said(g.Of, at, f))
	}
}

// gpuRequestInvalid reports what the rules of ACK's shared cards refuse and no other check examines: how memory is
// spread over cards.
func gpuRequestInvalid(x *inventory, g rayGroup, report reporter) {
	shape := &g.Workers.Pod
	for _, f := range landing.CheckGPUs(x.Input.Reader, shape) {
		if shape.CardsAsked <= 1 && !strings.HasPrefix(f.Field, "koordinator.sh/") {
			continue // checks of their own report these
		}
		limit := g.rayContainer().Get("resources", "limits", f.Field)
		units, whole := quantity(limit)
		if f.Code != landing.GPURequestInvalid || !whole {
			continue
		}
		found := said(g.Of, limit.Path(), f)
		if cards := shape.CardsAsked; f.Field == gpuinfo.AliyunMemory {
			multiple := (units.Value() + cards - 1) / cards * cards
			found.Fix = patch(g.Of, replace(limit.Path(), strconv.FormatInt(multiple, 10)))
		} else if memory := g.rayContainer().Get("resources", "limits", gpuinfo.AliyunMemory); memory.Has() {
			label := g.Path("template", "metadata", "labels", gpuinfo.AliyunCount)
			found.Fix = patch(g.Of, remove(label)).Hint("or remove the cores")
		}
		report(found)
	}
}

func gpuRequestsOnly(_ *inventory, r gpuRequest, report reporter) {
	if r.Request.Has() && !r.Limit.Has() {
		report(shows(r.Of, r.Request, patch(r.Of, set(r.Of, r.Limit.Path(), r.Request.Raw()))))
	}
}

func gpuLimitDiffers(_ *inventory, r gpuRequest, report reporter) {
	request, requested := quantity(r.Request)
	limit, limited := quantity(r.Limit)
	if requested && limited && request.Cmp(limit) != 0 {
		report(occurrence{
			Object: r.Of, Path: r.Request.Path(), Seen: "request " + r.Request.String() + ", limit " + r.Limit.String(),
			Fix: patch(r.Of, replace(r.Request.Path(), r.Limit.Raw())),
		})
	}
}

func gpuNotWhole(_ *inventory, r gpuRequest, report reporter) {
	limit, ok := quantity(r.Limit)
	if !ok || limit.Sign() >= 0 && limit.MilliValue()%1000 == 0 {
		return
	}
	to := "1"
	if limit.Sign() > 0 {
		limit.RoundUp(0)
		to = limit.String()
	}
	report(shows(r.Of, r.Limit, replaceAmount(r, to)))
}

func gpuOutsideRayContainer(_ *inventory, r gpuRequest, report reporter) {
	limit, ok := quantity(r.Limit)
	if !ok || limit.Sign() <= 0 || r.ofRay() || !r.isDevices() {
		return
	}
	ofRay := r.rayContainer().Get("resources", "limits", r.Resource)
	list := r.Container.Path().Parent().LastKey()
	if ofRay.Has() && list == "initContainers" {
		return // the Ray container gets the same GPU after the init container
	}
	operations := append([]operation{set(r.Of, ofRay.Path(), r.Limit.Raw())}, removeRequest(r)...)
	report(shows(r.Of, r.Limit, patch(r.Of, operations...)))
}

// replaceAmount writes another amount as the limit, and as the request if there is one.
func replaceAmount(r gpuRequest, to string) fix {
	operations := []operation{replace(r.Limit.Path(), to)}
	if r.Request.Has() {
		operations = append(operations, replace(r.Request.Path(), to))
	}
	return patch(r.Of, operations...)
}

// removeRequest removes the resource from limits, and from requests if it is there.
func removeRequest(r gpuRequest) []operation {
	operations := []operation{remove(r.Limit.Path())}
	if r.Request.Has() {
		operations = append(operations, remove(r.Request.Path()))
	}
	return operations
}
