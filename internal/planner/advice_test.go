package planner

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestFewerGPUsAreAdvisedIfOneDeviceIsEnough, and only if the pod then has everything else.
func TestFewerGPUsAreAdvisedIfOneDeviceIsEnough(t *testing.T) {
	const advice = "group g declares 4 GPUs for 2 × nvidia.com/gpu: set num-gpus to 2, so that each GPU is a whole device, which is enough"
	for name, test := range map[string]struct {
		gpus, cpus int64
		named      bool
	}{
		"one":              {1, 4, true},
		"both":             {2, 4, true},
		"more than it has": {3, 4, false},
		"too little CPU":   {1, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			memory, compute := int64(20<<10), 0.5
			g := pooled("g", 4, onPool("a", 7, 2))
			g.Slice = &Slice{Kind: gpuinfo.Whole, Isolation: gpuinfo.Hardware, MemoryMiB: &memory, ComputeFraction: &compute}
			s := Snapshot{Groups: []Group{g}, Demand: gpuRequests(test.gpus, 1)}
			s.Requests[0].Bundle["CPU"] = raydemand.Whole(test.cpus)
			s.Requests[0].Slice = &raydemand.SliceRequirement{Memory: 30 << 30}
			message := Compute(s, Policy{}).InfeasibleRequests[0].Reason.Message
			if strings.Contains(message, advice) != test.named || strings.Contains(message, "num-gpus") != test.named {
				t.Error(message)
			}
		})
	}
}
