package doctor

import (
	"fmt"
	"strconv"

	"heliostat.dev/heliostat/internal/doctor/fix"
	"heliostat.dev/heliostat/internal/doctor/inventory"
	"heliostat.dev/heliostat/pkg/gpuinfo"
)

func gpuCoreStep(_ *inventory.Inventory, r inventory.GPURequest, report reporter) {
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

func gpuCoresWithoutMemory(_ *inventory.Inventory, r inventory.GPURequest, report reporter) {
	memory := r.Container.Get("resources", "limits", gpuinfo.AliyunMemory)
	if r.Resource == gpuinfo.AliyunCores && r.Limit.Has() && !memory.Has() {
		patch := fix.Patch(r.Of, fix.Set(r.Of, memory.Path(), "4"))
		report(ofField(r, r.Limit, patch.Hint("replace 4 with the GiB that a worker needs")))
	}
}

// gpuMemoryAboveCard compares requests for gpu-mem with the largest card that a node is known to have.
func gpuMemoryAboveCard(x *inventory.Inventory, report reporter) {
	var largest int64
	node := ""
	for _, n := range x.Nodes {
		if units := n.GPUs.UnitsPerCard[gpuinfo.AliyunMemory]; units > largest {
			largest, node = units, n.Name
		} else if n.GPUs.Units[gpuinfo.AliyunMemory] > 0 && units == 0 {
			return // a node that does not say how large its cards are may have a larger one
		}
	}
	if largest == 0 {
		return
	}
	for _, g := range x.Groups {
		for _, r := range g.GPURequests() {
			q, ok := inventory.Quantity(r.Limit)
			if r.Resource != gpuinfo.AliyunMemory || !ok || q.Value() <= largest {
				continue
			}
			found := ofField(r, r.Limit, replaceAmount(r, strconv.FormatInt(largest, 10)))
			found.more = fmt.Sprintf("the largest card, on node %s, has %d", node, largest)
			report(found)
		}
	}
}

// countedShares are resources whose names end with gpu, so that the operator counts each unit as a GPU, and what a unit
// is.
var countedShares = map[string]string{
	"koordinator.sh/gpu":     "a percent of a card",
	"k8s.amazonaws.com/vgpu": "a share of a card",
}

func gpuSharesCounted(_ *inventory.Inventory, g inventory.Group, report reporter) {
	if g.DeclaresGPUs() {
		return
	}
	for name, unit := range countedShares {
		limit := g.RayContainer().Get("resources", "limits", name)
		if q, ok := inventory.Quantity(limit); ok && q.Sign() > 0 {
			report(occurrence{
				object: g.Of, path: limit.Path(), seen: limit.String(), more: "a unit of " + name + " is " + unit,
				fix: declareGPUs(g, "1"),
			})
		}
	}
}
