package planner

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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
			Selectors: []raydemand.Selector{plannertest.Parse("kind", fmt.Sprint(i))}})
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
		b.Run(fmt.Sprintf("%d pods of each of 20 groups on 1000 nodes", demand), func(b *testing.B) {
			s := onBusyNodes(demand)
			launched, began := 0, cpuTime()
			for b.Loop() {
				launched = 0
				for _, n := range Compute(s, Policy{}).Launch {
					launched += n
				}
			}
			b.ReportMetric(float64(cpuTime()-began)/1e6/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(launched), "launched")
		})
	}
}
