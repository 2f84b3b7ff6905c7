package doctor

import (
	"fmt"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// countedShares are resources whose names end with gpu, so that the operator takes each unit for a whole GPU, and what a unit is.
var countedShares = map[string]string{
	"koordinator.sh/gpu":     "a percent of a card",
	"k8s.amazonaws.com/vgpu": "a share of a card",
}

// sharedGPUs are checks of GPUs that are handed out in parts.
var sharedGPUs = []Check{
	{
		Code: "gpu-core-step", Severity: raydemand.Error,
		Why: "ACK hands out a card's cores in steps of 5 percent, from 5 to 100; the pods are not scheduled",
		look: perGPU(func(c gpuAsk, tell func(sight)) {
			cores, ok := c.limit.quantity()
			if c.name != gpuinfo.AliyunCores || !ok {
				return
			}
			n := cores.Value()
			if err := (gpuinfo.ACKShared{Memory: 1, Cores: int(min(max(n, -1), 1000))}).Check(); err != nil || n == 0 {
				right := fmt.Sprint(min(100, max(5, (n+4)/5*5)))
				ops := []op{{Op: "replace", At: c.limit.at, Value: right}}
				if c.request.has() {
					ops = append(ops, op{Op: "replace", At: c.request.at, Value: right})
				}
				c.tell(tell, c.limit, c.patch(ops...))
			}
		}),
	},
	{
		Code: "gpu-cores-without-memory", Severity: raydemand.Error,
		Why: "ACK shares a card by memory, and cores only come beside it; the pods are not scheduled",
		look: perGPU(func(c gpuAsk, tell func(sight)) {
			memory := c.container.get("resources", "limits", gpuinfo.AliyunMemory)
			if c.name == gpuinfo.AliyunCores && c.limit.has() && !memory.has() {
				c.tell(tell, c.limit, c.patch(c.of.set(memory.at, "4")).hint("with the GiB that a worker needs"))
			}
		}),
	},
	{
		Code: "gpu-mem-above-card", Severity: raydemand.Error,
		Why:  "memory is taken from one card, whatever the sum over the cards of a node, so the pods fit nowhere",
		look: func(x *exam, tell func(sight)) { x.lookForMemory(tell) },
	},
	{
		Code: "gpu-shares-counted", Severity: raydemand.Warning,
		Why: "the name ends with gpu, so the operator passes each unit to Ray as a whole GPU",
		look: perWorkers(func(_ *exam, g group, tell func(sight)) {
			if g.declaresGPUs() {
				return
			}
			for name, unit := range countedShares {
				limit := g.ray().get("resources", "limits", name)
				if q, ok := limit.quantity(); ok && q.Sign() > 0 {
					tell(sight{of: g.of, at: limit.at, seen: limit.String(), more: "a unit of " + name + " is " + unit, fix: g.declare("1")})
				}
			}
		}),
	},
}

// lookForMemory compares what is asked of gpu-mem with the largest card that a node is known to have.
func (x *exam) lookForMemory(tell func(sight)) {
	var largest int64
	where := ""
	for _, n := range x.nodes {
		if units := n.gpus.UnitsPerCard[gpuinfo.AliyunMemory]; units > largest {
			largest, where = units, n.Name
		} else if n.gpus.Units[gpuinfo.AliyunMemory] > 0 && units == 0 {
			return // a node that does not say how large its cards are may have the one
		}
	}
	if largest == 0 {
		return
	}
	for _, g := range x.groups {
		for _, c := range g.asks() {
			q, ok := c.limit.quantity()
			if c.name != gpuinfo.AliyunMemory || !ok || q.Value() <= largest {
				continue
			}
			ops := []op{{Op: "replace", At: c.limit.at, Value: fmt.Sprint(largest)}}
			if c.request.has() {
				ops = append(ops, op{Op: "replace", At: c.request.at, Value: fmt.Sprint(largest)})
			}
			tell(sight{of: g.of, at: c.limit.at, seen: c.limit.String(), more: fmt.Sprintf("the largest card, on node %s, has %d", where, largest),
				fix: c.patch(ops...)})
		}
	}
}
