package planner

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// BenchmarkShapes plans 20,000 requests that all differ, for fleets on which that takes long.
func BenchmarkShapes(b *testing.B) {
	capped := plannertest.Fleet(20)
	for i := range capped.Groups {
		capped.Groups[i].Max = 20
	}
	for _, c := range []struct {
		name     string
		snapshot Snapshot
	}{
		{"20 groups", plannertest.Fleet(20)},
		{"20 groups, 1000 half-full nodes", halfFull(plannertest.Fleet(20), 1000)},
		{"20 groups, 10000 half-full nodes", halfFull(plannertest.Fleet(20), 10_000)},
		{"20 groups, at most 20 pods each", capped},
		{"100 groups", plannertest.Fleet(100)},
	} {
		s := c.snapshot
		s.LaunchConfigCheckDisabled = true
		s.Requests = manyShapes(20_000)
		for _, work := range []int64{0, 80_000_000} {
			b.Run(fmt.Sprintf("%s, work %d M", c.name, work/1e6), func(b *testing.B) { benchmarkPlan(b, s, Policy{Work: work}) })
		}
	}
}

// BenchmarkKinds plans very much demand of each kind with the budget of two seconds: 20,000 requests or gangs that all
// differ, and 5,000 of owners.
func BenchmarkKinds(b *testing.B) {
	for _, c := range []struct {
		name     string
		snapshot Snapshot
	}{
		{"20 groups", plannertest.Fleet(20)},
		{"20 groups, 1000 half-full nodes", halfFull(plannertest.Fleet(20), 1000)},
		{"20 groups, 10000 half-full nodes", halfFull(plannertest.Fleet(20), 10_000)},
		{"100 groups", plannertest.Fleet(100)},
	} {
		c.snapshot.LaunchConfigCheckDisabled = true
		kinds := ofEachKind(c.snapshot, manyShapes(20_000))
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			s := kinds[kind]
			b.Run(c.name+", "+kind, func(b *testing.B) { benchmarkPlan(b, s, Policy{Work: 80_000_000}) })
		}
	}
}

// BenchmarkLargeGangs plans 499 gangs whose bundles all differ, and equal gangs of equal bundles. Bundles, not gangs,
// decide how long that takes (heavyDemand in internal/controller).
func BenchmarkLargeGangs(b *testing.B) {
	requests := manyShapes(20_000)
	for _, c := range []struct {
		bundles int
		equal   bool
		work    []int64
	}{
		{bundles: 2, work: []int64{0, 80_000_000}},
		{bundles: 8, work: []int64{0, 80_000_000}},
		{bundles: 20, work: []int64{0, 80_000_000}},
		{bundles: 200, work: []int64{80_000_000}}, // without a budget, it takes minutes
		{bundles: 200, equal: true, work: []int64{0, 80_000_000}},
	} {
		s := plannertest.Fleet(20)
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
		for _, work := range c.work {
			name := fmt.Sprintf("%d bundles, equal %t, work %d M", c.bundles, c.equal, work/1e6)
			b.Run(name, func(b *testing.B) { benchmarkPlan(b, s, Policy{Work: work}) })
		}
	}
}

// BenchmarkTurns plans 20,000 requests that all differ in turns. The last plan finds nothing left.
func BenchmarkTurns(b *testing.B) {
	s := plannertest.Fleet(20)
	s.LaunchConfigCheckDisabled = true
	s.Requests = manyShapes(20_000)
	for b.Loop() {
		plans, launched, last := inTurns(b, s, Policy{Work: 80_000_000}, 100)
		if last.Deferred != nil || len(last.InfeasibleRequests) > 0 {
			b.Fatalf("after %d plans, %+v is deferred", plans, last.Deferred)
		}
		b.ReportMetric(float64(plans), "plans")
		b.ReportMetric(float64(launched), "launched")
	}
}

func benchmarkPlan(b *testing.B, s Snapshot, policy Policy) {
	launched, unmet, work, began := 0, 0, int64(0), cpuTime()
	for b.Loop() {
		plan, looks := ComputeCounting(s, policy)
		launched, unmet, work = 0, len(plan.InfeasibleRequests), looks
		for _, n := range plan.Launch {
			launched += n
		}
	}
	b.ReportMetric(float64(cpuTime()-began)/1e6/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(launched), "launched")
	b.ReportMetric(float64(unmet), "unmet")
	b.ReportMetric(float64(work)/1e6, "Mlooks")
}
