package plannertest

import (
	"fmt"
	"math/rand/v2"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Bundle writes a bundle of CPUs, GPUs and GiB of memory.
func Bundle(cpu, gpu, gib int64) raydemand.Bundle {
	b := raydemand.Bundle{"CPU": raydemand.Whole(cpu)}
	if gpu > 0 {
		b["GPU"] = raydemand.Whole(gpu)
	}
	if gib > 0 {
		b["memory"] = raydemand.Whole(gib << 30)
	}
	return b
}

// Fleet has different groups of twenty sizes, every second one with GPUs.
func Fleet(groups int64) model.Snapshot {
	var s model.Snapshot
	for i := range groups {
		s.Groups = append(s.Groups, model.Group{Name: fmt.Sprintf("group-%03d", i),
			Resources: Bundle(4*(i%20+1), i%2*(i%20/4+1), 16*(i+1)), Max: 1000, NumOfHosts: 1})
	}
	return s
}

func RandomShapes(count int, each int64) []raydemand.Request {
	random := rand.New(rand.NewPCG(3, 4))
	requests := make([]raydemand.Request, count)
	for i := range requests {
		b := Bundle(1+random.Int64N(16), 0, 1+random.Int64N(32))
		b["CPU"] += raydemand.Amount(i) // all different
		if random.IntN(3) == 0 {
			b["GPU"] = raydemand.Whole(1 + random.Int64N(3))
		}
		requests[i] = raydemand.Request{Bundle: b, Count: each}
	}
	return requests
}
