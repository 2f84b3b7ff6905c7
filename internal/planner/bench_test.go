package planner

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// bundle writes a bundle of CPUs, GPUs and GiB of memory.
func bundle(cpu, gpu, gib int64) raydemand.Bundle {
	b := raydemand.Bundle{"CPU": raydemand.Whole(cpu)}
	if gpu > 0 {
		b["GPU"] = raydemand.Whole(gpu)
	}
	if gib > 0 {
		b["memory"] = raydemand.Whole(gib << 30)
	}
	return b
}

// fleet has 20 groups of rising size, every second one with GPUs.
func fleet() Snapshot {
	var s Snapshot
	for i := range int64(20) {
		s.Groups = append(s.Groups, Group{
			Name: fmt.Sprintf("group-%02d", i), Resources: bundle(4*(i+1), i%2*(i/4+1), 16*(i+1)), Max: 1000, NumOfHosts: 1,
		})
	}
	return s
}

// wideFleet has many groups of twenty sizes, no two of them alike.
func wideFleet(groups int64) Snapshot {
	var s Snapshot
	for i := range groups {
		s.Groups = append(s.Groups, Group{
			Name: fmt.Sprintf("group-%03d", i), Resources: bundle(4*(i%20+1), i%2*(i%20/4+1), 16*(i+1)), Max: 1000, NumOfHosts: 1,
		})
	}
	return s
}

// halfFull adds nodes of the fleet's groups that are in use to a random share, as Ray reports them: with a resource
// and a label of their own.
func halfFull(s Snapshot, count int) Snapshot {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range count {
		g := s.Groups[i%len(s.Groups)]
		n := Node{
			Pod: fmt.Sprintf("pod-%05d", i), Group: g.Name, State: Running, Total: g.Resources.Clone(), Available: g.Resources.Clone(),
			Labels: map[string]string{"ray.io/node-id": fmt.Sprint(i), "ray.io/node-group": g.Name},
		}
		n.Total[fmt.Sprintf("node:10.0.%d.%d", i/256, i%256)] = raydemand.One
		for _, name := range g.Resources.Names() {
			n.Available[name] -= g.Resources[name] * raydemand.Amount(random.IntN(5)) / 4
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

func randomShapes(count int, each int64) []raydemand.Request {
	random := rand.New(rand.NewPCG(3, 4))
	requests := make([]raydemand.Request, count)
	for i := range requests {
		b := bundle(1+random.Int64N(16), 0, 1+random.Int64N(32))
		b["CPU"] += raydemand.Amount(i) // no two alike
		if random.IntN(3) == 0 {
			b["GPU"] = raydemand.Whole(1 + random.Int64N(3))
		}
		requests[i] = raydemand.Request{Bundle: b, Count: each}
	}
	return requests
}

func gangsOf(count, size int) []raydemand.Gang {
	gangs := make([]raydemand.Gang, count)
	strategies := []raydemand.Strategy{raydemand.Pack, raydemand.StrictSpread, raydemand.StrictPack, raydemand.Spread}
	for i := range gangs {
		gangs[i] = raydemand.Gang{ID: fmt.Sprintf("%036x", i), Strategy: strategies[i%4]}
		for range size {
			gangs[i].Bundles = append(gangs[i].Bundles, bundle(2, 1, 0))
		}
	}
	return gangs
}

func BenchmarkCompute(b *testing.B) {
	identical := []raydemand.Request{{Bundle: bundle(1, 1, 0), Count: 10_000}}
	single := make([]raydemand.Request, 10_000)
	for i := range single {
		single[i] = raydemand.Request{Bundle: bundle(1, 1, 0), Count: 1}
	}
	for _, scenario := range []struct {
		name  string
		fleet Snapshot
		nodes int
		ask   raydemand.Demand
	}{
		{"10000 identical bundles, 20 groups", fleet(), 0, raydemand.Demand{Requests: identical}},
		{"10000 identical bundles one by one, 20 groups", fleet(), 0, raydemand.Demand{Requests: single}},
		{"10000 identical bundles, 1000 half-full nodes", fleet(), 1000, raydemand.Demand{Requests: identical}},
		{"200 shapes × 50, 1000 half-full nodes", fleet(), 1000, raydemand.Demand{Requests: randomShapes(200, 50)}},
		{"200 shapes × 50, 10000 half-full nodes", fleet(), 10_000, raydemand.Demand{Requests: randomShapes(200, 50)}},
		{"500 gangs of 4, 200 half-full nodes", fleet(), 200, raydemand.Demand{Gangs: gangsOf(500, 4)}},
		{"no demand, 1000 half-full nodes", fleet(), 1000, raydemand.Demand{}},
		{"1000 shapes × 10, 50 groups", wideFleet(50), 0, raydemand.Demand{Requests: randomShapes(1000, 10)}},
		{"1000 shapes × 10, 100 groups", wideFleet(100), 0, raydemand.Demand{Requests: randomShapes(1000, 10)}},
	} {
		s := halfFull(scenario.fleet, scenario.nodes)
		s.LaunchConfigCheckDisabled = true
		s.Demand = scenario.ask
		b.Run(scenario.name, func(b *testing.B) {
			b.ReportAllocs()
			launched := 0
			for b.Loop() {
				launched = 0
				for _, n := range Compute(s, Policy{}).Launch {
					launched += n
				}
			}
			b.ReportMetric(float64(launched), "launched")
		})
	}
}
