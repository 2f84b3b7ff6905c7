package planner

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// halfFull adds nodes of the fleet's groups, each used to a random share, as Ray reports them: with a resource and a
// label of their own.
func halfFull(s Snapshot, count int) Snapshot {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range count {
		g := s.Groups[i%len(s.Groups)]
		n := Node{
			Pod: fmt.Sprintf("pod-%05d", i), Group: g.Name, State: Running, Total: g.Resources.Clone(), Available: g.Resources.Clone(),
			Labels: map[string]string{"ray.io/node-id": fmt.Sprint(i), "ray.io/node-group": g.Name},
		}
		maps.Copy(n.Labels, g.Labels)
		n.Total[fmt.Sprintf("node:10.0.%d.%d", i/256, i%256)] = raydemand.One
		for _, name := range g.Resources.Names() {
			n.Available[name] -= g.Resources[name] * raydemand.Amount(random.IntN(5)) / 4
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// selected gives every third request a selector that every fourth group matches.
func selected(s Snapshot, requests []raydemand.Request) (Snapshot, []raydemand.Request) {
	s.Groups = slices.Clone(s.Groups)
	for i := range s.Groups {
		s.Groups[i].Labels = map[string]string{"zone": string(rune('a' + i%4))}
	}
	for i := range requests {
		if i%3 == 0 {
			requests[i].Selectors = []raydemand.Selector{plannertest.Parse("zone", "a"), plannertest.Parse("zone", "!a")}
		}
	}
	return s, requests
}

// busy uses everything except memory.
func busy(s Snapshot) Snapshot {
	for i := range s.Nodes {
		s.Nodes[i].Available = raydemand.Bundle{"memory": s.Nodes[i].Total["memory"] / 2}
	}
	return s
}

// tasks ask for one to four CPUs each.
func tasks(count int64) (requests []raydemand.Request) {
	for cpus := range int64(4) {
		requests = append(requests, raydemand.Request{Bundle: plannertest.Bundle(cpus+1, 0, 0), Count: (count + cpus) / 4})
	}
	return requests
}

func gangsOf(count, size int) []raydemand.Gang {
	gangs := make([]raydemand.Gang, count)
	strategies := []raydemand.Strategy{raydemand.Pack, raydemand.StrictSpread, raydemand.StrictPack, raydemand.Spread}
	for i := range gangs {
		gangs[i] = raydemand.Gang{ID: fmt.Sprintf("%036x", i), Strategy: strategies[i%4]}
		for range size {
			gangs[i].Bundles = append(gangs[i].Bundles, plannertest.Bundle(2, 1, 0))
		}
	}
	return gangs
}

// differentGangs returns gangs that are all different.
func differentGangs(count int) []raydemand.Gang {
	gangs := gangsOf(count, 2)
	for i := range gangs {
		gangs[i].Strategy = raydemand.Pack
		for k := range gangs[i].Bundles {
			gangs[i].Bundles[k]["CPU"] += raydemand.Amount(i)
		}
	}
	return gangs
}

// gangsSharing gives gangs a topology label.
func gangsSharing(label string, gangs []raydemand.Gang) []raydemand.Gang {
	for i := range gangs {
		gangs[i].Strategy, gangs[i].TopologyLabel = raydemand.Pack, label
	}
	return gangs
}

// cpuTime is the CPU time of the process so far, including garbage collection.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func BenchmarkCompute(b *testing.B) {
	identical := []raydemand.Request{{Bundle: plannertest.Bundle(1, 1, 0), Count: 10_000}}
	single := make([]raydemand.Request, 10_000)
	for i := range single {
		single[i] = raydemand.Request{Bundle: plannertest.Bundle(1, 1, 0), Count: 1}
	}
	labelled, labelledRequests := selected(plannertest.Fleet(20), plannertest.RandomShapes(200, 50))
	for _, scenario := range []struct {
		name     string
		snapshot Snapshot
		ask      raydemand.Demand
	}{
		{"10000 identical bundles, 20 groups", plannertest.Fleet(20), raydemand.Demand{Requests: identical}},
		{"10000 identical bundles one by one, 20 groups", plannertest.Fleet(20), raydemand.Demand{Requests: single}},
		{"10000 identical bundles, 1000 half-full nodes", halfFull(plannertest.Fleet(20), 1000), raydemand.Demand{Requests: identical}},
		{"10000 identical bundles, 10000 half-full nodes", halfFull(plannertest.Fleet(20), 10_000), raydemand.Demand{Requests: identical}},
		{"200 shapes × 50, 1000 half-full nodes", halfFull(plannertest.Fleet(20), 1000), raydemand.Demand{Requests: plannertest.RandomShapes(200, 50)}},
		{"200 shapes × 50, 10000 half-full nodes", halfFull(plannertest.Fleet(20), 10_000), raydemand.Demand{Requests: plannertest.RandomShapes(200, 50)}},
		{"200 shapes × 50 with labels and 20 gangs, 10000 half-full nodes", halfFull(labelled, 10_000),
			raydemand.Demand{Requests: labelledRequests, Gangs: gangsOf(20, 4)}},
		{"13315 tasks, 1337 busy nodes", busy(halfFull(plannertest.Fleet(20), 1337)), raydemand.Demand{Requests: tasks(13_315)}},
		{"500 gangs of 4, 200 half-full nodes", halfFull(plannertest.Fleet(20), 200), raydemand.Demand{Gangs: gangsOf(500, 4)}},
		{"10000 different gangs of 2, 200 half-full nodes", halfFull(plannertest.Fleet(20), 200), raydemand.Demand{Gangs: differentGangs(10_000)}},
		{"10000 bundles of 0.4 GPU and 5000 of 0.6, 1000 half-full nodes", halfFull(plannertest.Fleet(20), 1000), raydemand.Demand{Requests: []raydemand.Request{
			{Bundle: raydemand.Bundle{"GPU": 4000}, Count: 10_000}, {Bundle: raydemand.Bundle{"GPU": 6000}, Count: 5000}}}},
		{"50 gangs of 2 on a node each, 2000 half-full nodes", halfFull(plannertest.Fleet(20), 2000), raydemand.Demand{Gangs: gangsSharing("ray.io/node-id", gangsOf(50, 2))}},
		{"50 gangs of 9 on a node each, 2000 half-full nodes", halfFull(plannertest.Fleet(20), 2000), raydemand.Demand{Gangs: gangsSharing("ray.io/node-id", gangsOf(50, 9))}},
		{"no demand, 1000 half-full nodes", halfFull(plannertest.Fleet(20), 1000), raydemand.Demand{}},
		{"demand that is served, 1000 half-full nodes", halfFull(plannertest.Fleet(20), 1000), raydemand.Demand{Requests: plannertest.RandomShapes(20, 1)}},
		{"50 shapes × 50, 50 groups", plannertest.Fleet(50), raydemand.Demand{Requests: plannertest.RandomShapes(50, 50)}},
		{"50 shapes × 50, 100 half-full nodes", halfFull(plannertest.Fleet(20), 100), raydemand.Demand{Requests: plannertest.RandomShapes(50, 50)}},
		{"1000 shapes × 10, 50 groups", plannertest.Fleet(50), raydemand.Demand{Requests: plannertest.RandomShapes(1000, 10)}},
		{"100000 shapes × 1, 20 groups", plannertest.Fleet(20), raydemand.Demand{Requests: plannertest.RandomShapes(100_000, 1)}},
		{"1000 shapes × 10, 100 groups", plannertest.Fleet(100), raydemand.Demand{Requests: plannertest.RandomShapes(1000, 10)}},
	} {
		s := scenario.snapshot
		s.LaunchConfigCheckDisabled = true
		s.Demand = scenario.ask
		b.Run(scenario.name, func(b *testing.B) {
			b.ReportAllocs()
			launched, began := 0, cpuTime()
			for b.Loop() {
				launched = 0
				for _, n := range Compute(s, Policy{}).Launch {
					launched += n
				}
			}
			// On a machine that does other work too, elapsed time says little.
			b.ReportMetric(float64(cpuTime()-began)/1e6/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(launched), "launched")
		})
	}
}
