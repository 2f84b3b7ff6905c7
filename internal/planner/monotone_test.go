package planner

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// unserved counts the unserved bundles of a plan; a gang or a call of request_resources counts as one.
func unserved(p Plan) (n int64) {
	for _, d := range p.Summary {
		n += d.Impossible + d.Capped + d.Closed + d.CoolingDown
	}
	return n
}

// roomier is a cluster with more room: a higher limit, or one more free worker.
func roomier(t *rapid.T, s Snapshot) Snapshot {
	more := s
	more.Groups, more.Nodes = slices.Clone(s.Groups), slices.Clone(s.Nodes)
	if len(s.Groups) == 0 {
		return more
	}
	i := rapid.IntRange(0, len(s.Groups)-1).Draw(t, "which")
	g := &more.Groups[i]
	if g.Closed != "" || g.Replicas != nil && *g.Replicas > g.Max {
		return more // a higher maximum admits pods that were requested before, not this demand
	}
	g.Max++
	if g.NumOfHosts == 1 && rapid.Bool().Draw(t, "free") {
		if g.Replicas != nil {
			replicas := *g.Replicas + 1
			g.Replicas = &replicas
		}
		if s.MaxWorkers != nil { // it must not take another worker's place
			bound := *s.MaxWorkers + 1
			more.MaxWorkers = &bound
		}
		more.Nodes = append(more.Nodes, Node{Pod: "one-more", Group: g.Name, State: Running, Total: g.Resources, Available: g.Resources, Labels: g.Labels})
	}
	return more
}

// weightLeft adds up the scarce resources of a plan's unserved requests.
func weightLeft(s Snapshot, plan Plan) (sum float64) {
	p := place.NewFleet(&s)
	for _, u := range plan.InfeasibleRequests {
		sum += float64(u.Count) * p.Needed(p.NewItem(u.Request, p.NeedOf(u.Request.Bundle), ""))
	}
	return sum
}

// TestMoreCapacityNeverServesLessOfSeveralShapes weighs requests, because a large one may be served instead of small
// ones. It leaves out multi-host replicas under a common bound (docs/design/0002-the-planner.md, Limits).
func TestMoreCapacityNeverServesLessOfSeveralShapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		s.UpscalingMode, s.Gangs, s.Constraint, s.KeptResources = "", nil, nil, nil
		for i := range s.Groups {
			s.Groups[i].Min = 0
			if s.Groups[i].NumOfHosts > 1 {
				s.MaxWorkers = nil
			}
		}
		more := roomier(t, s)
		before, after := Compute(s, Policy{}), Compute(more, Policy{})
		if len(before.Terminate)+len(after.Terminate) > 0 {
			return // as below
		}
		if a, b := weightLeft(s, before), weightLeft(more, after); place.CompareNearly(b, a) > 0 {
			t.Errorf("%g is left, %g with more capacity\n%s\n%s", a, b, compact(s), compact(more))
		}
	})
}

// TestMoreCapacityNeverServesLess has one kind of demand. Of several, the first may use what is added: minimums before
// all demand, gangs before requests.
func TestMoreCapacityNeverServesLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		s.UpscalingMode = ""
		for i := range s.Groups {
			s.Groups[i].Min = 0
		}
		one := func(all []raydemand.Request) []raydemand.Request { return all[:min(len(all), 1)] }
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			s.Requests, s.Gangs, s.Constraint, s.KeptResources = one(s.Requests), nil, nil, nil
		case 1:
			s.Requests, s.Gangs, s.Constraint, s.KeptResources = nil, s.Gangs[:min(len(s.Gangs), 1)], nil, nil
		case 2:
			s.Requests, s.Gangs, s.Constraint, s.KeptResources = nil, nil, one(s.Constraint), nil
		}
		before, after := Compute(s, Policy{}), Compute(roomier(t, s), Policy{})
		if len(before.Terminate)+len(after.Terminate) > 0 {
			return // stopped pods do not serve, and a higher limit stops others
		}
		if a, b := unserved(before), unserved(after); b > a {
			t.Errorf("%d are left, %d with more capacity\n%s\n%s\n%s", a, b, compact(s), compact(before.Summary), compact(after.Summary))
		}
	})
}

// TestABusyWorkerIsStoppedOnlyAboveAMaximumAndAfterAllOthers: a stopped worker with work is marked as busy, because it
// may stop only by a drain with a deadline; and it stays if another worker without work could stop instead.
func TestABusyWorkerIsStoppedOnlyAboveAMaximumAndAfterAllOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		s.LaunchConfigCheckDisabled = true
		plan := Compute(s, Policy{})
		stops := map[string]Termination{}
		for _, stop := range plan.Terminate {
			stops[stop.Pod] = stop
		}
		hosts := map[string]int{}
		for _, g := range s.Groups {
			hosts[g.Name] = g.NumOfHosts
		}
		for _, n := range s.Nodes {
			stop, goes := stops[n.Pod]
			if !goes || n.State != Running {
				continue
			}
			if !stop.Busy || stop.Reason != model.StopMaxGroup && stop.Reason != model.StopMaxWorkers {
				t.Errorf("%s has work and is stopped as %+v", n.Pod, stop)
			}
			for _, other := range s.Nodes {
				_, goesToo := stops[other.Pod]
				if gentler := other.State == Idle || other.State == Pending; gentler && !goesToo && other.Group == n.Group && hosts[n.Group] == 1 {
					t.Errorf("%s has work and is stopped, %s of the same group is %s and stays", n.Pod, other.Pod, other.State)
				}
			}
		}
	})
}

// TestOfEqualGangsAsManyAreServedAsFitAndNoneHoldsHalf has room for a number of bundles, each on a worker of its own.
func TestOfEqualGangsAsManyAreServedAsFitAndNoneHoldsHalf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gangs, bundles, workers := rapid.IntRange(1, 5).Draw(t, "gangs"), rapid.IntRange(1, 5).Draw(t, "bundles"), rapid.IntRange(0, 20).Draw(t, "workers")
		gpu := raydemand.Bundle{raydemand.GPU: raydemand.One}
		s := Snapshot{Groups: []Group{{Name: "g", Resources: gpu, Max: workers, NumOfHosts: 1}}}
		there := rapid.IntRange(0, workers).Draw(t, "there")
		for i := range there {
			s.Nodes = append(s.Nodes, Node{Pod: fmt.Sprint("n", i), Group: "g", State: Running, Total: gpu, Available: gpu})
		}
		for i := range gangs {
			s.Gangs = append(s.Gangs, raydemand.Gang{ID: fmt.Sprint("gang", i), Bundles: slices.Repeat([]raydemand.Bundle{gpu}, bundles),
				Strategy: rapid.SampledFrom([]raydemand.Strategy{raydemand.Pack, raydemand.Spread, raydemand.StrictSpread}).Draw(t, "strategy")})
		}
		plan := Compute(s, Policy{})
		served := min(gangs, workers/bundles)
		if got := gangs - len(plan.InfeasibleGangRequests); got != served {
			t.Errorf("%d of %d gangs of %d are served with %d workers, want %d", got, gangs, bundles, workers, served)
		}
		if want := max(0, served*bundles-there); plan.Launch["g"] != want {
			t.Errorf("%d are launched for %d gangs of %d beside %d workers, want %d", plan.Launch["g"], served, bundles, there, want)
		}
	})
}
