package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// placedGroups draws groups whose pods take GPUs, or memory of cards of 15 units, each with demand that no other group
// serves.
func placedGroups(t *rapid.T) Snapshot {
	var s Snapshot
	for i := range rapid.IntRange(1, 3).Draw(t, "groups") {
		g := Group{Name: fmt.Sprintf("g%d", i), Resources: raydemand.Bundle{"CPU": raydemand.One, "GPU": raydemand.One}, Max: 100, NumOfHosts: rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "hosts"),
			Labels: map[string]string{"kind": fmt.Sprint(i)}, Pod: &landing.Pod{Requests: landing.Quantities{"cpu": raydemand.Whole(rapid.Int64Range(1, 4).Draw(t, "cpu"))}}}
		if rapid.Bool().Draw(t, "cards") {
			units := rapid.Int64Range(1, 15).Draw(t, "units")
			g.Pod.Cards = &landing.CardRequest{Cards: 1, Memory: units}
			g.Pod.Requests["aliyun.com/gpu-mem"] = raydemand.Whole(units)
		} else {
			g.Pod.Requests["nvidia.com/gpu"] = raydemand.Whole(rapid.Int64Range(1, 8).Draw(t, "gpus"))
		}
		s.Groups = append(s.Groups, g)
		s.Requests = append(s.Requests, raydemand.Request{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: rapid.Int64Range(0, 6).Draw(t, "demand"),
			Selectors: []raydemand.Selector{selectorOf("kind", fmt.Sprint(i))}})
	}
	return s
}

// placedNode draws a node with GPUs and with cards; a full one has all of both.
func placedNode(t *rapid.T, s *Snapshot, full bool) landing.Place {
	amount := func(name string, most int64) int64 {
		if full {
			return most
		}
		return rapid.Int64Range(0, most).Draw(t, name)
	}
	place := landing.Place{Node: fmt.Sprintf("n%d", len(s.Places)), Nodes: ptr(int64(1)), Free: landing.Quantities{
		"cpu": raydemand.Whole(amount("cpus", 8)), "nvidia.com/gpu": raydemand.Whole(amount("gpus", 8)), "aliyun.com/gpu-mem": raydemand.Whole(30)}}
	for range 2 {
		place.Cards = append(place.Cards, landing.Card{Total: 15, Memory: ptr(amount("memory", 15))})
	}
	for i := range s.Groups {
		if full || rapid.IntRange(0, 3).Draw(t, "accepts") > 0 {
			place.Accepts = append(place.Accepts, s.Groups[i].Name)
		}
	}
	return place
}

// fitsSomehow tries all ways to place pods on nodes, one pod after the other.
func fitsSomehow(pods []*Group, nodes []landing.Place) bool {
	if len(pods) == 0 {
		return true
	}
	pod, tried := pods[0].Pod, map[string]bool{}
	for i := range nodes {
		node := &nodes[i]
		key := fmt.Sprint(node.Free, node.Accepts, left(node))
		if tried[key] || !slices.Contains(node.Accepts, pods[0].Name) {
			continue
		}
		tried[key] = true
		before := *node
		for card := range node.Cards {
			if after, fits := taken(before, pod, card); fits {
				*node = after
				if fitsSomehow(pods[1:], nodes) {
					return true
				}
				*node = before
			}
			if pod.Cards == nil {
				break
			}
		}
	}
	return false
}

func left(node *landing.Place) (memory []int64) {
	for _, card := range node.Cards {
		memory = append(memory, *card.Memory)
	}
	return memory
}

func taken(node landing.Place, pod *landing.Pod, card int) (landing.Place, bool) {
	free := landing.Quantities{}
	for name, have := range node.Free {
		if have < pod.Requests[name] {
			return node, false
		}
		free[name] = have - pod.Requests[name]
	}
	node.Free = free
	if pod.Cards == nil {
		return node, true
	}
	memory := *node.Cards[card].Memory - pod.Cards.Memory
	node.Cards = slices.Clone(node.Cards)
	node.Cards[card].Memory = &memory
	return node, memory >= 0
}

// TestWhatAPlanLaunchesHasPlaces compares plans with all ways to place their pods.
func TestWhatAPlanLaunchesHasPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := placedGroups(t)
		for range rapid.IntRange(1, 3).Draw(t, "nodes") {
			s.Places = append(s.Places, placedNode(t, &s, false))
		}
		plan := Compute(s, Policy{})
		var pods []*Group
		for i := range s.Groups {
			g := &s.Groups[i]
			if !slices.ContainsFunc(s.Places, func(p landing.Place) bool { return slices.Contains(p.Accepts, g.Name) }) {
				continue // nothing is known about its nodes
			}
			for range plan.Launch[g.Name] {
				pods = append(pods, g)
			}
		}
		if nodes := slices.Clone(s.Places); !fitsSomehow(pods, nodes) {
			t.Fatalf("launches %v, which does not fit on %+v", plan.Launch, s.Places)
		}
	})
}

// TestNothingIsWithheldWhereEveryPodHasANode checks that all demand is launched for if there are as many empty nodes as
// pods, and each could hold any of them.
func TestNothingIsWithheldWhereEveryPodHasANode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := placedGroups(t)
		var pods int64
		for i := range s.Requests {
			hosts := int64(s.Groups[i].NumOfHosts)
			pods += (s.Requests[i].Count + hosts - 1) / hosts * hosts
		}
		for range pods {
			s.Places = append(s.Places, placedNode(t, &s, true))
		}
		if plan := Compute(s, Policy{}); len(plan.InfeasibleRequests) > 0 {
			t.Fatalf("launches %v and leaves %+v", plan.Launch, plan.InfeasibleRequests)
		}
	})
}

// onNodes is two groups of 5 and 3 GPUs on two nodes of 8.
func onNodes() Snapshot {
	s := Snapshot{Groups: []Group{pooled("five", 1), pooled("three", 1)}}
	for i, gpus := range []int64{5, 3} {
		g := &s.Groups[i]
		g.Labels = map[string]string{"kind": g.Name}
		g.Pod = &landing.Pod{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(gpus)}}
		s.Requests = append(s.Requests, raydemand.Request{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: 9, Selectors: []raydemand.Selector{selectorOf("kind", g.Name)}})
	}
	s.Places = []landing.Place{{Pool: "p", Node: "a", Nodes: ptr(int64(2)), Free: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(8)}, Accepts: []string{"five", "three"}}}
	return s
}

func TestPodsOnTheirWayTakePlacesAndBoundOnesDoNot(t *testing.T) {
	launched := func(s Snapshot) int {
		plan := Compute(s, Policy{})
		return 5*plan.Launch["five"] + 3*plan.Launch["three"]
	}
	if got := launched(onNodes()); got != 16 {
		t.Errorf("launches %d GPUs on two nodes of 8, want 16", got)
	}
	waiting := onNodes()
	waiting.Nodes = []Node{{Pod: "x", Group: "five", State: Pending}}
	if got := launched(waiting); got != 11 {
		t.Errorf("beside a pod of 5 GPUs on its way, launches %d GPUs, want 11", got)
	}
	bound := waiting
	bound.Groups = slices.Clone(waiting.Groups)
	bound.Groups[0].Bound = 1
	if got := launched(bound); got != 16 {
		t.Errorf("beside a pod that is on a node, and is no part of what is free, launches %d GPUs, want 16", got)
	}
}

func TestAFullNodeNamesThePodsThatUseIt(t *testing.T) {
	s := onNodes()
	s.Requests[0].Count, s.Requests[1].Count = 2, 3
	plan := Compute(s, Policy{})
	const want = "the nodes cannot hold more pods of group three: at most 4 with what other pods leave free (has 0, launching 2); 16 of 16 nvidia.com/gpu are taken; 2 pods of group five can use the same nodes"
	for _, unmet := range plan.InfeasibleRequests {
		if unmet.Reason.Code == Capped && !strings.HasPrefix(unmet.Reason.Message, want) {
			t.Errorf("%s\nwant %s", unmet.Reason.Message, want)
		}
	}
	if len(plan.InfeasibleRequests) == 0 {
		t.Errorf("launches %v", plan.Launch)
	}
}
