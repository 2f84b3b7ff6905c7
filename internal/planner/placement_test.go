package planner

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestWhatIsCalledServedCanReallyBePlaced finds a placement by exhaustive search, with rules of its own.
func TestWhatIsCalledServedCanReallyBePlaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		s.Gangs = s.Gangs[:min(len(s.Gangs), 1)]
		for i := range s.Gangs {
			s.Gangs[i].Fallbacks = nil
		}
		for i := range rapid.IntRange(0, 2*len(s.Gangs)).Draw(t, "equal gangs") {
			equal := s.Gangs[0]
			equal.ID = fmt.Sprint("equal", i)
			s.Gangs = append(s.Gangs, equal)
		}
		s.Requests = s.Requests[:min(len(s.Requests), 2)]
		s.Constraint, s.KeptResources = nil, nil
		plan := Compute(s, Policy{})
		search := newSolver(applied(s, plan, 0))
		for _, g := range s.Gangs {
			if !slices.ContainsFunc(plan.InfeasibleGangRequests, func(u UnmetGang) bool { return u.ID == g.ID }) {
				search.gangs = append(search.gangs, g)
			}
		}
		left := map[string]int64{}
		for _, u := range plan.InfeasibleRequests {
			left[Describe(u.Request)] += u.Count
		}
		for _, r := range s.Requests {
			key := Describe(r)
			for range r.Count {
				if left[key] > 0 {
					left[key]--
					continue
				}
				search.requests = append(search.requests, r)
			}
		}
		if !search.succeeds() {
			t.Errorf("no placement exists for what the plan calls served:\n%s\n%s", compact(s), compact(plan))
		}
	})
}

// solver places bundles on nodes by exhaustive search, within a number of steps that random cases do not reach.
type solver struct {
	free     []raydemand.Bundle
	labels   []map[string]string
	placed   []map[string]string
	gangs    []raydemand.Gang
	requests []raydemand.Request
	steps    int
}

func newSolver(s Snapshot) *solver {
	x := &solver{}
	add := func(available, total raydemand.Bundle, labels, placed map[string]string) {
		free := raydemand.Bundle{}
		for name, amount := range available {
			free[name] = min(amount, total[name])
		}
		x.free, x.labels, x.placed = append(x.free, free), append(x.labels, labels), append(x.placed, placed)
	}
	if s.Head != nil {
		add(s.Head.Resources, s.Head.Resources, nil, nil)
	}
	known := map[string]bool{}
	for _, g := range s.Groups {
		known[g.Name] = true
	}
	for _, n := range s.Nodes {
		if known[n.Group] && (n.State == Running || n.State == Idle || n.State == Pending) {
			add(n.Available, n.Total, n.Labels, n.PlacedLabels)
		}
	}
	// Lost hosts of a multi-host replica return.
	for _, g := range s.Groups {
		alive := 0
		for _, n := range s.Nodes {
			if n.Group == g.Name && n.State != AllocationTimeout {
				alive++
			}
		}
		for ; g.Closed == "" && alive%g.NumOfHosts != 0; alive++ {
			add(g.Resources, g.Resources, g.Labels, nil)
		}
	}
	return x
}

func (x *solver) succeeds() bool {
	return x.place(make([]int, 0, 8), 0)
}

const searchSteps = 2_000_000

// place puts bundle i of the gang somewhere, then all requests.
func (x *solver) place(where []int, i int) bool {
	if x.steps++; x.steps > searchSteps {
		return true
	}
	if len(x.gangs) == 0 {
		return x.placeRequests(0)
	}
	g := x.gangs[0]
	if i == len(g.Bundles) {
		x.gangs = x.gangs[1:]
		found := x.place(make([]int, 0, 8), 0)
		x.gangs = append([]raydemand.Gang{g}, x.gangs...)
		return found
	}
	for n := range x.free {
		if !x.allowed(g, where, n) || !x.free[n].Fits(g.Bundles[i]) {
			continue
		}
		before := x.free[n].Clone()
		x.free[n].Take(g.Bundles[i])
		if x.place(append(where, n), i+1) {
			return true
		}
		x.free[n] = before
	}
	return false
}

// allowed: a gang that holds nodes already spreads to others, packs onto one of them, and stays within their topology.
func (x *solver) allowed(g raydemand.Gang, where []int, n int) bool {
	if i := len(where); i < len(g.BundleSelectors) && !g.BundleSelectors[i].Matches(x.labels[n]) {
		return false
	}
	held := x.held(g)
	if g.TopologyLabel != "" {
		value, ok := x.labels[n][g.TopologyLabel]
		shared := func(other int) bool { at, has := x.labels[other][g.TopologyLabel]; return has && at == value }
		if !ok || len(where) > 0 && !shared(where[0]) || len(held) > 0 && !slices.ContainsFunc(held, shared) {
			return false
		}
	}
	switch g.Strategy {
	case raydemand.StrictSpread:
		return !slices.Contains(where, n) && !slices.Contains(held, n)
	case raydemand.StrictPack:
		return (len(where) == 0 || where[0] == n) && (len(held) == 0 || slices.Contains(held, n))
	}
	return true
}

// held are the nodes that already hold a bundle of the gang.
func (x *solver) held(g raydemand.Gang) (nodes []int) {
	for n, placed := range x.placed {
		if _, ok := placed[g.PlacedLabel()]; ok {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func (x *solver) placeRequests(i int) bool {
	if x.steps++; x.steps > searchSteps {
		return true
	}
	if i == len(x.requests) {
		return true
	}
	r := x.requests[i]
	if r.Bundle.IsZero() && !slices.ContainsFunc(r.Selectors, func(s raydemand.Selector) bool { return len(s) > 0 }) {
		return x.placeRequests(i + 1)
	}
	for n := range x.free {
		if !matchesAny(r.Selectors, x.labels[n]) || !x.free[n].Fits(r.Bundle) {
			continue
		}
		before := x.free[n].Clone()
		x.free[n].Take(r.Bundle)
		if x.placeRequests(i + 1) {
			return true
		}
		x.free[n] = before
	}
	return false
}

// matchesAny reports whether labels match one of the selectors, if there are any.
func matchesAny(selectors []raydemand.Selector, labels map[string]string) bool {
	return len(selectors) == 0 || slices.ContainsFunc(selectors, func(s raydemand.Selector) bool { return s.Matches(labels) })
}
