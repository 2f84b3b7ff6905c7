package capacity_test

import (
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

func TestForHowManyWorkersNodesAreKept(t *testing.T) {
	price, room := 6.0, int64(2)
	gpu := capacity.NodeGroup{Hosts: 1, Max: 4, Wanted: 1, Price: &price, Provided: true}
	change := func(f func(*capacity.NodeGroup)) capacity.NodeGroup { g := gpu; f(&g); return g }
	entry := func(count int64, schedules ...capacity.Schedule) capacity.WarmNodes {
		return capacity.WarmNodes{Group: "gpu", Count: count, Schedules: schedules}
	}
	one := []capacity.WarmNodes{entry(2)}
	for _, c := range []struct {
		name    string
		entries []capacity.WarmNodes
		group   capacity.NodeGroup
		budget  *capacity.Budget
		wanted  capacity.NodesWanted
		want    string // asked/count code of each entry
		message string
	}{
		{"they are there", one, gpu, nil, capacity.NodesWanted{}, "2/2 warm", "nodes for 2 of 2 workers of group gpu"},
		{"a schedule applies", []capacity.WarmNodes{entry(0, capacity.Schedule{Count: 3, Window: fixed(true)})}, gpu, nil,
			capacity.NodesWanted{}, "3/3 schedule", "by the schedule"},
		{"no schedule applies", []capacity.WarmNodes{entry(0, capacity.Schedule{Count: 3, Window: fixed(false)})}, gpu, nil,
			capacity.NodesWanted{}, "", ""},
		{"the autoscaler has not answered", one, change(func(g *capacity.NodeGroup) { g.Provided = false }), nil,
			capacity.NodesWanted{}, "2/2 nodes_waiting", "has not answered"},
		{"it has none", one, change(func(g *capacity.NodeGroup) { g.Provided, g.Answer = false, "RequiresNewCapacity" }), nil,
			capacity.NodesWanted{}, "2/2 nodes_waiting", "says RequiresNewCapacity"},
		{"the group is near its maximum", []capacity.WarmNodes{entry(2), entry(2)}, gpu, nil, capacity.NodesWanted{},
			"2/2 warm, 1/2 at_max", "has or launches 1 of at most 4 workers"},
		{"it is over its maximum", one, change(func(g *capacity.NodeGroup) { g.Wanted = 9 }), nil, capacity.NodesWanted{},
			"0/2 at_max", ""},
		{"room is shared by entries", []capacity.WarmNodes{entry(2), entry(1)},
			change(func(g *capacity.NodeGroup) { g.Room = &room }), nil, capacity.NodesWanted{}, "2/2 warm, 1/1 warm",
			"room for 0 now"},
		{"there is no such group", []capacity.WarmNodes{{Group: "tpu", Count: 1}}, gpu, nil, capacity.NodesWanted{},
			"0/1 no_group", `no worker group "tpu"`},
		{"they cannot be asked for", one, gpu, nil, capacity.NodesWanted{Unavailable: "it is off"},
			"0/2 nodes_unavailable", "it is off"},
		{"within the budget", one, gpu, &capacity.Budget{PerDay: 5}, capacity.NodesWanted{Spent: 4}, "2/2 warm", ""},
		{"the budget is spent", one, gpu, &capacity.Budget{PerDay: 5}, capacity.NodesWanted{Spent: 5}, "0/2 budget_spent",
			"until the next day"},
		{"a budget without a price", one, change(func(g *capacity.NodeGroup) { g.Price = nil }), &capacity.Budget{PerDay: 5},
			capacity.NodesWanted{}, "0/2 unpriced", "has no price"},
	} {
		p := capacity.Policy{KeepWarmNodes: c.entries, Budget: c.budget}
		c.wanted.At, c.wanted.Groups = time.Time{}, map[string]capacity.NodeGroup{"gpu": c.group}
		plans := p.PlanNodes(c.wanted)
		lines, last := []string{}, ""
		for _, n := range plans {
			last = n.Message
			line := capacity.NodesLines([]capacity.NodesPlan{n})
			fields := strings.Fields(line) // keepWarmNodes[0]: warm: nodes for 2 of 2 workers of group gpu
			lines = append(lines, fields[4]+"/"+fields[6]+" "+strings.TrimSuffix(fields[1], ":"))
		}
		if got := strings.Join(lines, ", "); got != c.want || !strings.Contains(last, c.message) {
			t.Errorf("%s: %s, %q; want %s, %q", c.name, got, last, c.want, c.message)
		}
	}
}

func TestWhatWarmNodesCost(t *testing.T) {
	price := 3.0
	p := capacity.Policy{KeepWarmNodes: []capacity.WarmNodes{{Group: "slice", Count: 2}, {Group: "late", Count: 1}}}
	groups := map[string]capacity.NodeGroup{
		"slice": {Hosts: 4, Max: 8, Price: &price, Provided: true},
		"late":  {Hosts: 1, Max: 8, Price: &price},
	}
	plans := p.PlanNodes(capacity.NodesWanted{Groups: groups})
	if got := capacity.NodePods(plans, groups); got["slice"] != 8 || got["late"] != 1 {
		t.Errorf("nodes for %v pods, want 8 of the multi-host group and 1", got)
	}
	none, some := int64(0), int64(3)
	for _, c := range []struct {
		room *int64
		want float64
		why  string
	}{
		{&none, 24, "a node that nobody has launched costs nothing"},
		{&some, 27, "a node that is there costs, although the node autoscaler does not say that it keeps all"},
		{nil, 27, "a node may be there"},
	} {
		late := groups["late"]
		late.Room = c.room
		groups["late"] = late
		if got := capacity.NodesPerHour(plans, groups); got != c.want {
			t.Errorf("%g per hour, want %g: %s", got, c.want, c.why)
		}
	}
}
