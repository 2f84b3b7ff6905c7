package capacity_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/capacity"
)

func TestForHowManyWorkersNodesAreKept(t *testing.T) {
	room := int64(2)
	gpu := capacity.NodeGroup{Hosts: 1, Max: 4, Wanted: 1, Provided: true}
	change := func(f func(*capacity.NodeGroup)) capacity.NodeGroup { g := gpu; f(&g); return g }
	entry := func(count int64, schedules ...capacity.Schedule) capacity.WarmNodes {
		return capacity.WarmNodes{Group: "gpu", Count: count, Schedules: schedules}
	}
	one := []capacity.WarmNodes{entry(2)}
	for _, c := range []struct {
		name    string
		entries []capacity.WarmNodes
		group   capacity.NodeGroup
		wanted  capacity.NodesWanted
		want    string // asked/count code of each entry
		message string
	}{
		{"they are there", one, gpu, capacity.NodesWanted{}, "2/2 warm", "nodes for 2 of 2 workers of group gpu"},
		{"a schedule applies", []capacity.WarmNodes{entry(0, capacity.Schedule{Count: 3, Window: fixed(true)})}, gpu,
			capacity.NodesWanted{}, "3/3 schedule", "by the schedule"},
		{"no schedule applies", []capacity.WarmNodes{entry(0, capacity.Schedule{Count: 3, Window: fixed(false)})}, gpu,
			capacity.NodesWanted{}, "", ""},
		{"the autoscaler has not answered", one, change(func(g *capacity.NodeGroup) { g.Provided = false }),
			capacity.NodesWanted{}, "2/2 nodes_waiting", "has not answered"},
		{"it has none", one, change(func(g *capacity.NodeGroup) { g.Provided, g.Answer = false, "RequiresNewCapacity" }),
			capacity.NodesWanted{}, "2/2 nodes_waiting", "says RequiresNewCapacity"},
		{"the group is near its maximum", []capacity.WarmNodes{entry(2), entry(2)}, gpu, capacity.NodesWanted{},
			"2/2 warm, 1/2 at_max", "has or launches 1 of at most 4 workers"},
		{"it is over its maximum", one, change(func(g *capacity.NodeGroup) { g.Wanted = 9 }), capacity.NodesWanted{},
			"0/2 at_max", ""},
		{"room is shared by entries", []capacity.WarmNodes{entry(2), entry(1)},
			change(func(g *capacity.NodeGroup) { g.Room = &room }), capacity.NodesWanted{}, "2/2 warm, 1/1 warm",
			"room for 0 now"},
		{"there is no such group", []capacity.WarmNodes{{Group: "tpu", Count: 1}}, gpu, capacity.NodesWanted{},
			"0/1 no_group", `no worker group "tpu"`},
		{"they cannot be asked for", one, gpu, capacity.NodesWanted{Unavailable: "it is off"},
			"0/2 nodes_unavailable", "it is off"},
	} {
		p := capacity.Policy{KeepWarmNodes: c.entries}
		c.wanted.At, c.wanted.Groups = time.Time{}, map[string]capacity.NodeGroup{"gpu": c.group}
		plans := p.PlanNodes(c.wanted)
		lines, last := []string{}, ""
		for _, n := range plans {
			last = n.Message
			lines = append(lines, fmt.Sprintf("%d/%d %s", n.Asked, n.Count, n.Code))
		}
		if got := strings.Join(lines, ", "); got != c.want || !strings.Contains(last, c.message) {
			t.Errorf("%s: %s, %q; want %s, %q", c.name, got, last, c.want, c.message)
		}
	}
}

func TestForHowManyPodsNodesAreAskedFor(t *testing.T) {
	p := capacity.Policy{KeepWarmNodes: []capacity.WarmNodes{{Group: "slice", Count: 2}, {Group: "late", Count: 1}}}
	groups := map[string]capacity.NodeGroup{"slice": {Hosts: 4, Max: 8}, "late": {Hosts: 1, Max: 8}}
	plans := p.PlanNodes(capacity.NodesWanted{Groups: groups})
	if got := capacity.NodePods(plans, groups); got["slice"] != 8 || got["late"] != 1 {
		t.Errorf("nodes for %v pods, want 8 of the multi-host group and 1", got)
	}
}
