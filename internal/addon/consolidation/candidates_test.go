package consolidation

import (
	"errors"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// twoReplicas has two workers with one Serve replica each.
func twoReplicas() *scene {
	s := newScene(2)
	s.put("w0", replica())
	s.put("w1", replica())
	return s
}

func TestOnlyWorkersThatAreUsedALittleAreCandidates(t *testing.T) {
	busy := func(activity ...string) func(*scene, *Input) {
		return func(s *scene, in *Input) { in.View.Members[0].Node.Activity = activity }
	}
	group := func(change func(*nodepool.WorkerGroup)) func(*scene, *Input) {
		return func(s *scene, in *Input) { change(&in.View.Cluster.Groups[0]) }
	}
	for name, c := range map[string]struct {
		change func(*scene, *Input)
		want   string
	}{
		"both": {func(*scene, *Input) {}, "w0 w1"},
		"a multi-host group": {func(_ *scene, in *Input) {
			in.View.Cluster.Groups[0].NumOfHosts = 2
			for _, m := range in.View.Members {
				m.Replica = "a"
			}
		}, ""},
		"as many as the minimum":  {group(func(g *nodepool.WorkerGroup) { g.Replicas, g.Min = 3, 2 }), ""},
		"replicas at the minimum": {group(func(g *nodepool.WorkerGroup) { g.Replicas, g.Min = 1, 1 }), ""},
		"a suspended group":       {group(func(g *nodepool.WorkerGroup) { g.Suspended = true }), ""},
		"a machine that may go":   {func(_ *scene, in *Input) { in.View.Members[0].Going = &departure.Notice{} }, "w1"},
		"a machine that is gone":  {func(_ *scene, in *Input) { in.View.Members[0].NodeGone = true }, "w1"},
		"its user protects it, and Heliostat too": {func(_ *scene, in *Input) {
			in.View.Members[0].Guard = nodepool.Guard{DoNotDisrupt: nodepool.MarkedByUser, SafeToEvict: nodepool.MarkedByUs}
		}, "w1"},
		"a node that refuses work":      {func(_ *scene, in *Input) { in.Snapshot.Nodes[0].Refused = cpus(1) }, "w1"},
		"a task waits for arguments":    {busy(raydemand.ActiveWorkers, "Pulling task arguments."), "w1"},
		"nothing runs but it is in use": {busy("Resource: CPU currently in use."), "w1"},
	} {
		s := twoReplicas()
		in := s.input()
		c.change(s, &in)
		var pods []string
		for _, m := range Candidates(in.View, in.Snapshot) {
			pods = append(pods, m.Pod)
		}
		if got := strings.Join(pods, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestOnlyRestartableActorsEndWithTheirWorker: at the deadline of a drain, the worker ends with what runs there.
func TestOnlyRestartableActorsEndWithTheirWorker(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scene)
		want   bool
	}{
		"a restartable actor": {func(*scene) {}, true},
		"two of them":         {func(s *scene) { s.put("w0", actor(raydemand.RestartsAlways)) }, true},
		"a replica beside it": {func(s *scene) { s.put("w0", replica()) }, false},
		"an actor beside it":  {func(s *scene) { s.put("w0", actor(0)) }, false},
		"a task beside it":    {func(s *scene) { s.node("w0").Available.Take(cpus(1)) }, false},
		"a copy of an object": {func(s *scene) { s.copies("w0", 1) }, false},
		"a bundle beside it":  {func(s *scene) { s.node("w0").PlacedLabels = map[string]string{"_PG_1": ""} }, false},
		"an unknown cause":    {func(s *scene) { s.node("w0").Activity = append(s.node("w0").Activity, "Something new.") }, false},
		"an object being copied": {func(s *scene) {
			s.node("w0").Activity = append(s.node("w0").Activity, "Resource: object_store_memory currently in use.")
		}, false},
		"nothing any more": {func(s *scene) { s.residents = nil }, false},
	} {
		s := newScene(1)
		s.put("w0", actor(1))
		c.change(s)
		in := s.input()
		if got := addon.Restartable(in.View.Members, s.residents)[idOf("w0")]; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWhatTheWorkNeedsElsewhere(t *testing.T) {
	implicit := raydemand.ImplicitPrefix + "app:D"
	for name, c := range map[string]struct {
		change func(*scene)
		want   string
	}{
		"a group above its minimum": {func(s *scene) { s.cluster.Groups[0].Min = 1 }, "w0 serve, w1 serve"},
		"a share of each node": {func(s *scene) {
			s.residents[0].Resources = raydemand.Bundle{raydemand.CPU: raydemand.One, implicit: raydemand.One / 2}
			s.node("w0").Available[implicit] = raydemand.One / 2
		}, "w0 serve, w1 serve"},
		"replicas come before actors": {func(s *scene) {
			s.residents[0] = actor(1)
			s.residents[0].Node = idOf("w0")
		}, "w1 serve, w0 restartable"},
		"an actor without resources needs a CPU to start": {func(s *scene) {
			idle := actor(1)
			idle.Resources = raydemand.Bundle{}
			s.residents[0] = idle
			s.residents[0].Node = idOf("w0")
			s.node("w0").Available = cpus(4)
			s.put("w1", actor(0), actor(0), actor(0))
		}, ""},
	} {
		s := twoReplicas()
		c.change(s)
		if got := podsOf(s.moves()); got != c.want {
			t.Errorf("%s: moves are %q, want %q", name, got, c.want)
		}
	}
}

func TestTheHeadIsNoPlace(t *testing.T) {
	s := twoReplicas()
	s.put("w1", actor(0), actor(0), actor(0))
	in := s.input()
	in.Snapshot.Head = &planner.Node{State: planner.Running, Total: cpus(4), Available: cpus(4)}
	if got := Moves(in); len(got) > 0 {
		t.Errorf("moves are %v, want none", got)
	}
}

// TestNoRequestAndNoWarmCapacityGetsLess: two workers of four CPUs, of which three are free on each, are the maximum, so nothing
// can be launched for what would be missing.
func TestNoRequestAndNoWarmCapacityGetsLess(t *testing.T) {
	three := []raydemand.Request{{Bundle: cpus(3), Count: 2}}
	whole := []raydemand.Request{{Bundle: cpus(4), Count: 2}}
	for name, want := range map[string]func(*planner.Snapshot){
		"warm capacity": func(s *planner.Snapshot) {
			s.Warm = &planner.Warm{Keep: []planner.WarmEntry{{Name: "keepWarm[0]", Resources: cpus(3), Count: 2}}}
		},
		"request_resources": func(s *planner.Snapshot) { s.Constraint = whole },
		"a plain request":   func(s *planner.Snapshot) { s.KeptResources = whole },
		"a request": func(s *planner.Snapshot) {
			s.OwnedRequests = []raydemand.Owned{{ID: "r", Owner: "ann", Requests: three}}
		},
	} {
		s := twoReplicas()
		s.cluster.Groups[0].Max = 2
		if got := podsOf(s.moves()); got != "w0 serve, w1 serve" {
			t.Fatalf("%s: moves are %q before it", name, got)
		}
		in := s.input()
		want(in.Snapshot)
		plan := planner.Compute(*in.Snapshot, in.Snapshot.Policy)
		in.Plan = &plan
		if got := Moves(in); len(got) > 0 {
			t.Errorf("%s: moves are %s, want none", name, podsOf(got))
		}
	}
}

func TestWhileAnythingMovesNothingIsDrained(t *testing.T) {
	node := func(change func(*planner.Node)) func(*Input) {
		return func(in *Input) { change(&in.Snapshot.Nodes[0]) }
	}
	for name, c := range map[string]struct {
		change   func(*Input)
		want     string
		launches bool
	}{
		"nothing":           {func(*Input) {}, "", false},
		"a task that waits": {func(in *Input) { in.View.State.Demand.Requests = []raydemand.Request{{}} }, "demand waits", false},
		"a gang that waits": {func(in *Input) { in.View.State.Demand.Gangs = []raydemand.Gang{{}} }, "demand waits", false},
		"a launch":          {func(in *Input) { in.Plan.Launch = map[string]int{"cpu": 1} }, "pods are to be launched", true},
		"an idle worker":    {func(in *Input) { in.Plan.Terminate = append(in.Plan.Terminate, planner.Termination{}) }, "idle workers leave first", false},
		"a pod":             {node(func(n *planner.Node) { n.State = planner.Pending }), "worker w0 is on its way", true},
		"one that leaves":   {node(func(n *planner.Node) { n.State = planner.Leaving }), "worker w0 leaves", false},
		"a machine":         {node(func(n *planner.Node) { n.Going = &departure.Notice{} }), "the machine of worker w0 may go", false},
		"a pod that goes":   {node(func(n *planner.Node) { n.State, n.Going = planner.Pending, &departure.Notice{} }), "worker w0 is on its way", false},
	} {
		in := twoReplicas().input()
		c.change(&in)
		if got := Unquiet(in.View, in.Snapshot, in.Plan); got != c.want || Launches(in.Snapshot, in.Plan) != c.launches {
			t.Errorf("%s: %q, launches %v; want %q, %v", name, got, Launches(in.Snapshot, in.Plan), c.want, c.launches)
		}
	}
}

func TestABudgetOutlivesARaySession(t *testing.T) {
	tracker, now := steady(time.Hour)
	for range perHour {
		tracker.Drained(now)
	}
	tracker.Observe(now, "other", "", false)
	tracker.Looked(now, found(), nil)
	if _, why := tracker.Next(now, nodepool.ConsolidateServe, "", after); !strings.Contains(why, "4 workers were drained") {
		t.Errorf("in another session: %q", why)
	}
	tracker.Observe(now, "other", "", true)
	tracker.Observe(now.Add(59*time.Minute), "third", "", false)
	tracker.drained = nil
	tracker.Looked(now.Add(59*time.Minute), found(), nil)
	_, why := tracker.Next(now.Add(59*time.Minute), nodepool.ConsolidateServe, "", after)
	if !strings.Contains(why, "launched again") {
		t.Errorf("after a launch in the session before: %q", why)
	}
}

func TestAFailedLookBeginsTheTimeAnew(t *testing.T) {
	tracker, now := steady(time.Hour)
	tracker.Looked(now, nil, errors.New("no"))
	tracker.Looked(now.Add(time.Second), found(), nil)
	if move, why := tracker.Next(now.Add(time.Second), nodepool.ConsolidateServe, "", after); move != nil || !strings.Contains(why, "if nothing changes") {
		t.Errorf("%+v, %q", move, why)
	}
}

func TestAMoveThatPaysComesBeforeOneThatDoesNot(t *testing.T) {
	tracker, now := steady(time.Hour)
	tracker.moves[0].Again = 2 * time.Hour
	if move, why := tracker.Next(now, nodepool.ConsolidateRestartable, "", after); move == nil || move.Pod != "w1" {
		t.Errorf("%+v, %q; want w1", move, why)
	}
}
