package planner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var takenAt = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// worker is a node of group gpu with 8 GPUs, of which free are unused.
func worker(pod, group string, state model.NodeState, free int64, idle float64, activity ...string) model.Node {
	total := raydemand.Bundle{raydemand.CPU: raydemand.Whole(8), raydemand.GPU: raydemand.Whole(8)}
	available := total.Clone()
	available[raydemand.GPU] = raydemand.Whole(free)
	return model.Node{Pod: pod, Group: group, State: state, Total: total, Available: available, IdleSeconds: idle,
		Activity: activity}
}

func TestUnusedGPUsAreCountedByTheFirstCauseThatHolds(t *testing.T) {
	const works, cpu, gpu = "Busy workers on node.", "Resource: CPU currently in use.", "Resource: GPU currently in use."
	uses := func(n model.Node) model.Node {
		n.Available[raydemand.CPU] = raydemand.Whole(1)
		return n
	}
	placed := func(n model.Node) model.Node {
		n.PlacedLabels = map[string]string{"_PG_01": ""}
		return uses(n)
	}
	overdue := func(pod string) model.Node { return worker(pod, "gpu", model.Idle, 8, 90) }
	joining := worker("joining", "gpu", model.Leaving, 8, 0)
	joining.Since = takenAt
	group := model.Group{Name: "gpu", Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(8),
		raydemand.GPU: raydemand.Whole(8)}, Max: 20, NumOfHosts: 1}
	minimum, kept, hosts := group, group, group
	minimum.Min, kept.Max, hosts.NumOfHosts = 1, 1, 2
	four := []raydemand.Request{{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.Whole(4)}, Count: 1}}
	replica := func(n model.Node) model.Node { n.Replica = "r"; return n }
	for name, c := range map[string]struct {
		group    model.Group
		timeout  *float64
		nodes    []model.Node
		requests []raydemand.Request
		want     string
	}{
		"the idle timeout runs":     {group, new(60.0), []model.Node{worker("a", "gpu", model.Idle, 8, 30)}, nil, "idle_timeout"},
		"no idle timeout":           {group, nil, []model.Node{overdue("a")}, nil, "no_idle_timeout"},
		"stopped by this plan":      {group, new(60.0), []model.Node{overdue("a")}, nil, "leaving"},
		"draining":                  {group, new(60.0), []model.Node{worker("a", "gpu", model.Leaving, 8, 0, works)}, nil, "leaving"},
		"leaving, has never joined": {group, new(60.0), []model.Node{joining}, nil, ""},
		"on its way":                {group, new(60.0), []model.Node{worker("a", "gpu", model.Pending, 8, 0)}, nil, ""},
		"the minimum":               {minimum, new(60.0), []model.Node{overdue("a")}, nil, "minimum"},
		"kept for demand":           {kept, new(60.0), []model.Node{overdue("a")}, four, "kept"},
		"a host of its replica": {hosts, new(60.0), []model.Node{replica(overdue("a")),
			replica(worker("b", "gpu", model.Running, 0, 0, works, gpu))}, nil, "replica"},
		"too small a part":        {kept, new(60.0), []model.Node{worker("a", "gpu", model.Running, 3, 0, works, gpu)}, four, "fragment"},
		"a part is free and fits": {kept, new(60.0), []model.Node{worker("a", "gpu", model.Running, 4, 0, works, gpu)}, four, "no_demand"},
		"a part, nothing waits":   {group, new(60.0), []model.Node{worker("a", "gpu", model.Running, 3, 0, works, gpu)}, nil, "no_demand"},
		"work on CPUs":            {group, new(60.0), []model.Node{uses(worker("a", "gpu", model.Running, 8, 0, works, cpu))}, nil, "other_use"},
		"work without resources":  {group, new(60.0), []model.Node{worker("a", "gpu", model.Running, 8, 0, works)}, nil, "uncounted_work"},
		"objects": {group, new(60.0), []model.Node{worker("a", "gpu", model.Running, 8, 0,
			"Resource: object_store_memory currently in use.")}, nil, "holds_objects"},
		"a placement group": {group, new(60.0), []model.Node{placed(worker("a", "gpu", model.Running, 8, 0, cpu))}, nil, "reserved"},
		"arguments":         {group, new(60.0), []model.Node{worker("a", "gpu", model.Running, 8, 0, "Pulling task arguments.")}, nil, "awaits_arguments"},
		"just joined":       {group, new(60.0), []model.Node{worker("a", "gpu", model.Running, 8, 0)}, nil, "starting"},
		"new words":         {group, new(60.0), []model.Node{worker("a", "gpu", model.Running, 8, 0, "Warming up.")}, nil, "unexplained"},
		"nothing is free":   {group, new(60.0), []model.Node{worker("a", "gpu", model.Running, 0, 0, works, gpu)}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := model.Snapshot{TakenAt: takenAt, IdleTimeoutSeconds: c.timeout, Groups: []model.Group{c.group},
				Nodes: c.nodes, Demand: raydemand.Demand{Requests: c.requests}}
			plan := Compute(s, Policy{})
			want := map[string]raydemand.Amount{}
			if c.want != "" {
				want[c.want] = c.nodes[0].Available[raydemand.GPU]
			}
			if diff := cmp.Diff(want, UnusedGPUs(s, plan)); diff != "" {
				t.Errorf("unused GPUs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryFreeGPUOfAWorkerHasOneCause(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		plan := Compute(s, Policy{})
		var free, counted raydemand.Amount
		for i := range s.Nodes {
			if hasJoined(&s.Nodes[i]) {
				free = free.Plus(s.Nodes[i].Available[raydemand.GPU])
			}
		}
		for _, amount := range UnusedGPUs(s, plan) {
			counted = counted.Plus(amount)
		}
		if counted != free {
			t.Errorf("%s GPUs are free and %s have a cause", free, counted)
		}
	})
}
