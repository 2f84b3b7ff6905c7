package doctor

import (
	"fmt"
	"strconv"

	"heliostat.dev/heliostat/internal/doctor/check"
	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/inventory"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func gpuCoreStep(_ *inventory.Inventory, r inventory.GPURequest, report check.Reporter) {
	cores, ok := inventory.Quantity(r.Limit)
	if r.Resource != gpuinfo.AliyunCores || !ok {
		return
	}
	n := cores.Value()
	err := gpuinfo.ACKShared{Memory: 1, Cores: int(min(max(n, -1), 1000))}.Check()
	if err != nil || n == 0 {
		report(ofField(r, r.Limit, replaceAmount(r, strconv.FormatInt(min(100, max(5, (n+4)/5*5)), 10))))
	}
}

func gpuCoresWithoutMemory(_ *inventory.Inventory, r inventory.GPURequest, report check.Reporter) {
	memory := r.Container.Get("resources", "limits", gpuinfo.AliyunMemory)
	if r.Resource == gpuinfo.AliyunCores && r.Limit.Has() && !memory.Has() {
		patch := fix.Patch(r.Of, fix.Set(r.Of, memory.Path(), "4"))
		report(ofField(r, r.Limit, patch.Hint("replace 4 with the GiB that a worker needs")))
	}
}

// gpuMemoryAboveCard compares what a pod requests of one card with the largest card that a node, or the declared shape
// of one, has.
func gpuMemoryAboveCard(x *inventory.Inventory, g inventory.Group, report check.Reporter) {
	short, above := g.Pods.Pod.CardShortage(x.Input.Reader, x.NodesForPod(&g.Pods.Pod))
	if !above {
		return
	}
	for _, r := range g.GPURequests() {
		if r.Resource != short.Resource || !r.Limit.Has() {
			continue
		}
		found := ofField(r, r.Limit, replaceAmount(r, strconv.FormatInt(short.Most(), 10)))
		found.More = fmt.Sprintf("the largest card, on node %s, has %d", short.Node, short.Largest)
		if short.Cards > 1 {
			found.More = fmt.Sprintf("the pod takes %d of each of %d cards, and ", short.Each, short.Cards) + found.More
		}
		report(found)
	}
}

// gpuFractionRefused reports annotations that KAI's webhook refuses.
func gpuFractionRefused(_ *inventory.Inventory, g inventory.Group, report check.Reporter) {
	share := g.Pods.Pod.Share
	if share == nil || share.Refused == "" {
		return
	}
	annotations := g.Get("template", "metadata", "annotations")
	said, memory := annotations.Get(share.Annotation), annotations.Get("gpu-memory")
	found := check.Occurrence{Object: g.Of, Path: said.Path(), Seen: said.Text(), More: share.Refused,
		Fix: fix.Edit(g.Of, "correct the number")}
	var operations []fix.Operation
	for _, r := range g.GPURequests() {
		if r.Resource == gpuinfo.NvidiaGPU && r.Limit.Has() {
			operations = append(operations, removeRequest(r)...)
		}
	}
	switch {
	case memory.Has() && annotations.Get("gpu-fraction").Has():
		found.Fix = fix.Patch(g.Of, fix.Remove(memory.Path()))
	case len(operations) > 0:
		found.Fix = fix.Patch(g.Of, operations...).Hint("or remove the annotation, if a worker needs the whole card")
	}
	report(found)
}

// countedShares are resources whose names end with gpu, so that the operator counts each unit as a GPU, and what a unit
// is.
var countedShares = map[string]string{
	"koordinator.sh/gpu":     "a percent of a card",
	"k8s.amazonaws.com/vgpu": "a share of a card",
}

func gpuSharesCounted(x *inventory.Inventory, g inventory.Group, report check.Reporter) {
	if g.DeclaresGPUs() {
		return
	}
	count, _, problem := g.Workers.Devices(x.Input.Reader)
	if problem != "" {
		count = raydemand.One
	}
	for name, unit := range countedShares {
		limit := g.RayContainer().Get("resources", "limits", name)
		if q, ok := inventory.Quantity(limit); ok && q.Sign() > 0 {
			report(check.Occurrence{
				Object: g.Of, Path: limit.Path(), Seen: limit.String(), More: "a unit of " + name + " is " + unit,
				Fix: declareGPUs(g, count.String()),
			})
		}
	}
}
