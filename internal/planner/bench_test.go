package planner

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
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

func gangsOf(count, size int) []raydemand.Gang {
	gangs := make([]raydemand.Gang, count)
	strategies := []raydemand.Strategy{raydemand.Pack, raydemand.StrictSpread, raydemand.StrictPack, raydemand.Spread}
	for i := range gangs {
		gangs[i] = raydemand.Gang{ID: fmt.Sprintf("%036x", i), Strategy: strategies[i%4]}
		for range size {
			gangs[i].Bundles = append(gangs[i].Bundles, bundleOf(2, 1, 0))
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

// cpuTime is the CPU time of the process so far, including garbage collection.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func BenchmarkCompute(b *testing.B) {
	identical := []raydemand.Request{{Bundle: bundleOf(1, 1, 0), Count: 10_000}}
	parts := []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": 4000}, Count: 10_000}, {Bundle: raydemand.Bundle{"GPU": 6000}, Count: 5000}}
	for _, c := range []struct {
		name          string
		groups, nodes int
		ask           raydemand.Demand
	}{
		{"10000 identical bundles, 10000 half-full nodes", 20, 10_000, raydemand.Demand{Requests: identical}},
		{"200 shapes × 50 and 20 gangs, 10000 half-full nodes", 20, 10_000, raydemand.Demand{Requests: randomShapes(200, 50), Gangs: gangsOf(20, 4)}},
		{"10000 different gangs of 2, 200 half-full nodes", 20, 200, raydemand.Demand{Gangs: differentGangs(10_000)}},
		{"15000 parts of cards, 1000 half-full nodes", 20, 1000, raydemand.Demand{Requests: parts}},
		{"no demand, 1000 half-full nodes", 20, 1000, raydemand.Demand{}},
		{"1000 shapes × 10, 100 groups", 100, 0, raydemand.Demand{Requests: randomShapes(1000, 10)}},
	} {
		s := halfFull(fleetOf(int64(c.groups)), c.nodes)
		s.LaunchConfigCheckDisabled, s.Demand = true, c.ask
		b.Run(c.name, func(b *testing.B) { benchmarkPlan(b, s) })
	}
}

// onBusyNodes is 20 groups, each with demand of its own, beside 1,000 nodes of 8 cards. Each node has something else
// free. Half of the groups take parts of cards.
func onBusyNodes(demand int64) Snapshot {
	random := rand.New(rand.NewPCG(3, 4))
	var s Snapshot
	var names []string
	for i := range 20 {
		g := Group{Name: fmt.Sprintf("g%02d", i), Resources: raydemand.Bundle{"CPU": raydemand.Whole(4), "GPU": raydemand.One}, Max: 10_000, NumOfHosts: 1,
			Labels: map[string]string{"kind": fmt.Sprint(i)}, Pod: &landing.Pod{Requests: landing.Quantities{"cpu": raydemand.Whole(int64(1 + i%5)), "memory": raydemand.Whole(8 << 30)}}}
		if i%2 == 0 {
			units := int64(3 + i)
			g.Pod.Cards = &landing.CardRequest{Cards: 1, Memory: units}
			g.Pod.Requests["aliyun.com/gpu-mem"] = raydemand.Whole(units)
		} else {
			g.Pod.Requests["nvidia.com/gpu"] = raydemand.Whole(int64(1 + i%4))
		}
		names = append(names, g.Name)
		s.Groups = append(s.Groups, g)
		s.Requests = append(s.Requests, raydemand.Request{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: demand,
			Selectors: []raydemand.Selector{selectorOf("kind", fmt.Sprint(i))}})
	}
	for i := range 1000 {
		place := landing.Place{Pool: "p", Node: fmt.Sprintf("n%04d", i), Nodes: ptr(int64(1)), Accepts: names, Free: landing.Quantities{
			"cpu": raydemand.Whole(random.Int64N(96)), "memory": raydemand.Whole(random.Int64N(900 << 30)), "pods": raydemand.Whole(110)}}
		if i%2 == 0 {
			sum := int64(0)
			for range 8 {
				memory, cores := random.Int64N(40), int64(100)
				place.Cards = append(place.Cards, landing.Card{Total: 40, Memory: &memory, Cores: &cores, Used: true})
				sum += memory
			}
			place.Free["aliyun.com/gpu-mem"] = raydemand.Whole(sum)
		} else {
			place.Free["nvidia.com/gpu"] = raydemand.Whole(random.Int64N(9))
		}
		s.Places = append(s.Places, place)
	}
	return s
}

func BenchmarkPlaces(b *testing.B) {
	for _, demand := range []int64{5, 100, 10_000} {
		s := onBusyNodes(demand)
		b.Run(fmt.Sprintf("%d pods of each of 20 groups on 1000 nodes", demand), func(b *testing.B) { benchmarkPlan(b, s) })
	}
}

// BenchmarkKinds plans very much demand of each kind: 20,000 requests or gangs that all differ, and 5,000 of owners.
func BenchmarkKinds(b *testing.B) {
	for _, c := range []struct {
		name     string
		snapshot Snapshot
	}{
		{"20 groups", fleetOf(20)},
		{"20 groups, 1000 half-full nodes", halfFull(fleetOf(20), 1000)},
		{"20 groups, 10000 half-full nodes", halfFull(fleetOf(20), 10_000)},
		{"100 groups", fleetOf(100)},
	} {
		c.snapshot.LaunchConfigCheckDisabled = true
		kinds := ofEachKind(c.snapshot, manyShapes(20_000))
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			s := kinds[kind]
			b.Run(c.name+", "+kind, func(b *testing.B) { benchmarkPlan(b, s) })
		}
	}
}

// BenchmarkLargeGangs plans 499 gangs whose bundles all differ, and equal gangs of equal bundles.
func BenchmarkLargeGangs(b *testing.B) {
	requests := manyShapes(20_000)
	for _, c := range []struct {
		bundles int
		equal   bool
	}{{2, false}, {8, false}, {20, false}, {200, false}, {200, true}} {
		s := fleetOf(20)
		s.LaunchConfigCheckDisabled = true
		for g := range 499 {
			gang := raydemand.Gang{ID: fmt.Sprintf("g%05d", g), Strategy: raydemand.Pack}
			for k := range c.bundles {
				at := (g*c.bundles + k) % len(requests)
				if c.equal {
					at = 0
				}
				gang.Bundles = append(gang.Bundles, requests[at].Bundle)
			}
			s.Gangs = append(s.Gangs, gang)
		}
		b.Run(fmt.Sprintf("%d bundles, equal %t", c.bundles, c.equal), func(b *testing.B) { benchmarkPlan(b, s) })
	}
}

// BenchmarkTurns plans 20,000 requests that all differ in turns. The last plan finds nothing left.
func BenchmarkTurns(b *testing.B) {
	s := fleetOf(20)
	s.LaunchConfigCheckDisabled = true
	s.Requests = manyShapes(20_000)
	for b.Loop() {
		plans, launched, last := inTurns(b, s, Policy{}, 100)
		if last.Deferred != nil || len(last.InfeasibleRequests) > 0 {
			b.Fatalf("after %d plans, %+v is deferred", plans, last.Deferred)
		}
		b.ReportMetric(float64(plans), "plans")
		b.ReportMetric(float64(launched), "launched")
	}
}

// benchmarkPlan reports CPU time, because on a machine that does other work too, elapsed time says little.
func benchmarkPlan(b *testing.B, s Snapshot) {
	b.ReportAllocs()
	launched, unmet, began := 0, 0, cpuTime()
	for b.Loop() {
		plan := Compute(s, Policy{})
		launched, unmet = 0, len(plan.InfeasibleRequests)
		for _, n := range plan.Launch {
			launched += n
		}
	}
	b.ReportMetric(float64(cpuTime()-began)/1e6/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(launched), "launched")
	b.ReportMetric(float64(unmet), "unmet")
}
