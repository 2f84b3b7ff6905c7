package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// unproven is a pool of which nothing shows that its nodes can hold the groups' pods.
func unproven(pool string, groups ...string) landing.Place {
	return landing.Place{Pool: pool, New: true, AnySize: true, Unproven: true, Free: landing.Quantities{}, Accepts: groups}
}

// fourPlaces is a group g whose pods have four places on a node, and may be tried in pool q.
func fourPlaces(more ...string) Snapshot {
	var s Snapshot
	names := append([]string{"g"}, more...)
	for _, name := range names {
		s.Groups = append(s.Groups, Group{Name: name, Max: 1 << 20, Resources: raydemand.Bundle{"CPU": raydemand.One, "GPU": raydemand.One},
			Labels: map[string]string{"kind": name}, Pod: &landing.Pod{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One}}})
	}
	s.Places = []landing.Place{{Pool: "p", Node: "n", Nodes: ptr(int64(1)), Free: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(4)}, Accepts: names},
		unproven("q", names...)}
	return s
}

func gpus(n int64) []raydemand.Request {
	return []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: n}}
}

func TestOneReplicaIsTriedWhereNothingShowsThatThereIsRoom(t *testing.T) {
	tests := []struct {
		name   string
		change func(s *Snapshot)
		want   map[string]int
	}{
		{"beyond what known nodes hold", func(s *Snapshot) { s.Requests = gpus(5000) }, map[string]int{"g": 5}},
		{"not while known nodes have room", func(s *Snapshot) { s.Requests = gpus(4) }, map[string]int{"g": 4}},
		{"in one of two pools", func(s *Snapshot) {
			s.Requests, s.Places = gpus(5000), append(s.Places, unproven("r", "g"))
		}, map[string]int{"g": 5}},
		{"in the pool whose limit allows a pod", func(s *Snapshot) {
			s.Places[1].Free = landing.Quantities{"nvidia.com/gpu": 0}
			s.Requests, s.Places = gpus(5000), append(s.Places, unproven("r", "g"))
		}, map[string]int{"g": 5}},
		{"in no pool that may add no node", func(s *Snapshot) {
			s.Requests, s.Places[1].Nodes = gpus(5000), ptr(int64(0))
		}, map[string]int{"g": 4}},
		{"in a pool of which a file says nothing", func(s *Snapshot) { s.Requests, s.Places[1].Free = gpus(9), nil }, map[string]int{"g": 5}},
		{"whole replicas", func(s *Snapshot) {
			s.Requests, s.Groups[0].NumOfHosts, s.Places[0].Free = gpus(5000), 2, landing.Quantities{"nvidia.com/gpu": raydemand.Whole(3)}
		}, map[string]int{"g": 4}},
		{"for a minimum", func(s *Snapshot) { s.Groups[0].Min = 10 }, map[string]int{"g": 5}},
		{"for a gang", func(s *Snapshot) {
			s.Gangs = []raydemand.Gang{{Strategy: raydemand.Pack, Bundles: slices.Repeat([]raydemand.Bundle{{"GPU": raydemand.One}}, 8)}}
		}, map[string]int{"g": 5}},
		{"for request_resources", func(s *Snapshot) { s.Constraint = gpus(5000) }, map[string]int{"g": 5}},
		{"one of each group", func(s *Snapshot) {
			*s = fourPlaces("h")
			s.Requests = []raydemand.Request{kindOf("g", 50), kindOf("h", 50)}
		}, map[string]int{"g": 5, "h": 1}},
		{"after groups that fit, whatever they cost", func(s *Snapshot) {
			*s = fourPlaces("h")
			s.Requests, s.Groups[0].Price, s.Groups[1].Price = gpus(20), ptr(1.0), ptr(9.0)
			s.Places[0].Accepts, s.Places[1].Accepts = []string{"g"}, []string{"g"}
			s.Places = append(s.Places, landing.Place{Pool: "r", New: true, Free: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(1)}, Accepts: []string{"h"}})
		}, map[string]int{"g": 4, "h": 16}},
		{"a group that fits nowhere else is tried as before", func(s *Snapshot) {
			s.Requests, s.Groups[0].NodeFit, s.Places = gpus(5000), &model.NodeFit{Verdict: landing.Trying, Why: "no node"}, s.Places[1:]
		}, map[string]int{"g": 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := fourPlaces()
			test.change(&s)
			plan := Compute(s, Policy{})
			if got := fmt.Sprint(nonzero(plan.Launch)); got != fmt.Sprint(test.want) {
				t.Fatalf("launches %s, want %v", got, test.want)
			}
			if again := Compute(applied(s, plan, 1), Policy{}); len(nonzero(again.Launch)) > 0 {
				t.Errorf("then launches %v beside the pods on their way", again.Launch)
			}
		})
	}
}

func kindOf(kind string, n int64) raydemand.Request {
	request := gpus(n)[0]
	request.Selectors = []raydemand.Selector{{{Key: "kind", Op: raydemand.In, Values: []string{kind}}}}
	return request
}

func nonzero(launch map[string]int) map[string]int {
	some := map[string]int{}
	for name, n := range launch {
		if n > 0 {
			some[name] = n
		}
	}
	return some
}

func TestAPlanSaysInWhichPoolItTries(t *testing.T) {
	s := fourPlaces()
	s.Requests = gpus(5000)
	plan := Compute(s, Policy{})
	const want = "known nodes hold no more pods of group g, and nothing shows what new nodes of pool q have; Heliostat tries 1 pod at a time there"
	var got []string
	for _, reason := range plan.Groups[0].Reasons {
		got = append(got, reason.Code+": "+reason.Message)
	}
	if text := strings.Join(got, "\n"); !strings.Contains(text, "4995 more follow when a pod has joined") || !strings.Contains(text, "trying: "+want) {
		t.Errorf("the group's reasons are\n%s", text)
	}
	if unmet := plan.InfeasibleRequests; len(unmet) != 1 || unmet[0].Count != 4995 || unmet[0].Reason.Code != Trying ||
		unmet[0].Reason.Message != "group g: "+want {
		t.Errorf("unserved: %+v", unmet)
	}
}

// TestBeyondKnownNodesOneReplicaOfEachGroupIsTried draws groups, nodes and pools: without one replica of each group,
// all that a plan launches fits on the nodes.
func TestBeyondKnownNodesOneReplicaOfEachGroupIsTried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := placedGroups(t)
		var names []string
		for i := range s.Groups {
			if rapid.Bool().Draw(t, "tried") {
				names = append(names, s.Groups[i].Name)
			}
		}
		for range rapid.IntRange(1, 3).Draw(t, "nodes") {
			node := placedNode(t, &s, false)
			s.Places = append(s.Places, node)
		}
		if rapid.Bool().Draw(t, "gang") {
			s.Gangs = []raydemand.Gang{{Strategy: raydemand.Pack, Bundles: slices.Repeat([]raydemand.Bundle{{"GPU": raydemand.One}}, rapid.IntRange(1, 8).Draw(t, "bundles"))}}
		}
		s.Groups[0].Min = rapid.SampledFrom([]int{0, 0, 6}).Draw(t, "min")
		known := slices.Clone(s.Places)
		s.Places = append(s.Places, unproven("q", names...), unproven("r", names...))
		plan := Compute(s, Policy{})
		var pods []*Group
		for i := range s.Groups {
			g := &s.Groups[i]
			n := plan.Launch[g.Name]
			switch {
			case slices.Contains(names, g.Name):
				n -= g.NumOfHosts
			case !slices.ContainsFunc(known, func(p landing.Place) bool { return slices.Contains(p.Accepts, g.Name) }):
				n = 0 // nothing is known about its nodes
			}
			pods = append(pods, slices.Repeat([]*Group{g}, max(n, 0))...)
		}
		if !fitsSomehow(pods, slices.Clone(known)) {
			t.Fatalf("launches %v, which is more than a try of %v beside %+v", plan.Launch, names, known)
		}
	})
}

// drawFits draws a snapshot, some of whose groups fit no known node.
func drawFits(t *rapid.T) Snapshot {
	s := drawSnapshot(t)
	verdicts := []landing.State{"", "", landing.Trying, landing.Trying, landing.Nowhere, landing.Limited}
	for i := range s.Groups {
		if v := rapid.SampledFrom(verdicts).Draw(t, "verdict"); v != "" {
			s.Groups[i].NodeFit = &model.NodeFit{Verdict: v, Why: "there is no node"}
		}
	}
	return s
}

func TestOneReplicaOfAGroupThatIsTriedIsOnItsWayAndNoneOfOneThatIsExcluded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawFits(t)
		plan, waiting := Compute(s, Policy{}), onTheWayTo(s)
		for _, g := range s.Groups {
			joined := slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Group == g.Name && (n.State == Running || n.State == Idle) })
			launch := plan.Launch[g.Name]
			if g.Excluded() && launch > 0 {
				t.Errorf("launches %d of %s, which fits nowhere\n%s", launch, g.Name, compact(s))
			}
			if g.NodeFit != nil && !g.Excluded() && !joined && launch > 0 && launch+waiting[g.Name] > g.NumOfHosts {
				t.Errorf("launches %d of %s with %d on their way, want one replica at a time\n%s", launch, g.Name, waiting[g.Name], compact(s))
			}
		}
	})
}

// TestATryTakesNothingFromGroupsThatFit compares with a plan in which the groups that are tried are closed. It has only
// requests: a gang or call that can be served with tries also launches groups that fit, whose pods then serve others.
func TestATryTakesNothingFromGroupsThatFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawFits(t)
		s.Nodes, s.Gangs, s.Constraint, s.KeptResources = nil, nil, nil, nil
		closed := s
		closed.Groups = slices.Clone(s.Groups)
		for i := range s.Groups {
			if s.Groups[i].Min = 0; s.Groups[i].NodeFit != nil && !s.Groups[i].Excluded() {
				closed.Groups[i].Closed, closed.Groups[i].NodeFit = "it is tried", nil
			}
			s.Groups[i].Replicas, closed.Groups[i].Replicas, closed.Groups[i].Min = nil, nil, 0
		}
		with, without := Compute(s, Policy{}), Compute(closed, Policy{})
		for name, n := range without.Launch {
			if with.Launch[name] < n {
				t.Errorf("launches %v, and %v without the groups that are tried\n%s", with.Launch, without.Launch, compact(s))
			}
		}
	})
}
