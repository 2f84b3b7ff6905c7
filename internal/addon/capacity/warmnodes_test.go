package capacity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// world is a RayCluster with group gpu, whose policy wants nodes for two workers, and the buffers that were written.
type world struct {
	feature
	cluster  nodepool.Cluster
	mode     nodepool.Mode
	why      string
	desired  int
	withheld bool
}

func newWorld() *world {
	return &world{mode: nodepool.Managed, cluster: nodepool.Cluster{
		Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, UID: "uid",
		Groups: []nodepool.WorkerGroup{{Name: "gpu", Max: 4}},
		Policy: &capacity.Written{Source: "annotation", Policy: capacity.Policy{
			KeepWarmNodes: []capacity.WarmNodes{{Group: "gpu", Count: 2}}}},
		Buffers: &nodepool.Buffers{Templates: map[string]string{"gpu": "v1", "other": "v1"}},
	}}
}

func (w *world) entries(all ...capacity.WarmNodes) { w.cluster.Policy.KeepWarmNodes = all }

// round runs one cycle, expects these writes and carries them out.
func (w *world) round(t *testing.T, when string, want ...string) *addon.Cycle {
	t.Helper()
	o := &addon.Cycle{View: observe.View{Cluster: w.cluster, Mode: w.mode, Why: planner.Reason{Code: w.why}},
		Withheld: w.withheld}
	for _, g := range w.cluster.Groups {
		o.Intent.Plan.Groups = append(o.Intent.Plan.Groups, planner.GroupPlan{Name: g.Name, Desired: w.desired})
	}
	var writes []string
	for _, c := range w.nodeChanges(o) {
		b := *w.cluster.Buffers
		b.List = slices.DeleteFunc(slices.Clone(b.List), func(o nodepool.Buffer) bool { return o.Name == c.Buffer.Name })
		line := "remove " + c.Buffer.Group
		if !c.Remove {
			line = fmt.Sprintf("%s %d %s", c.Buffer.Group, c.Buffer.Pods, c.Buffer.Template)
			c.Buffer.Provided = true
			b.List = append(b.List, c.Buffer)
		}
		w.cluster.Buffers, writes = &b, append(writes, line)
	}
	if !slices.Equal(writes, want) {
		t.Errorf("%s: wrote %q, want %q", when, writes, want)
	}
	return o
}

func has(o *addon.Cycle, code string) bool {
	return slices.ContainsFunc(o.Findings, func(f raydemand.Finding) bool { return f.Code == code })
}

func TestABufferFollowsThePolicyAndTheGroup(t *testing.T) {
	w := newWorld()
	w.round(t, "at first", "gpu 2 v1")
	w.round(t, "at rest")
	w.cluster.Buffers.Templates = map[string]string{"gpu": "v2", "other": "v1"}
	w.round(t, "another template", "gpu 2 v2")
	w.entries(capacity.WarmNodes{Group: "gpu", Count: 3})
	w.round(t, "another count", "gpu 3 v2")
	w.desired = 3
	w.round(t, "the group can launch one more", "gpu 1 v2")
	w.desired = 4
	w.round(t, "the group is at its maximum", "remove gpu")
	w.desired = 0
	w.round(t, "workers have gone", "gpu 3 v2")
	w.cluster.Groups = append(w.cluster.Groups, nodepool.WorkerGroup{Name: "other", Max: 4})
	w.entries(capacity.WarmNodes{Group: "other", Count: 2})
	w.round(t, "for another group: nodes that nobody wants go first", "remove gpu", "other 2 v1")
	w.cluster.Groups = w.cluster.Groups[:1]
	if o := w.round(t, "the group has gone", "remove other"); !has(o, capacity.FindingGroupUnknown) {
		t.Errorf("findings %+v", o.Findings)
	}
	w.entries(capacity.WarmNodes{Group: "gpu", Count: 1})
	w.round(t, "again", "gpu 1 v2")
	w.cluster.Policy = nil
	w.cluster.Buffers.List[0].Deleting = true
	w.round(t, "it is being deleted")
	w.cluster.Buffers.List[0].Deleting = false
	w.round(t, "the policy has gone", "remove gpu")
}

type fixed bool

func (f fixed) Open(time.Time) bool { return bool(f) }

func TestWhatBecomesOfAnEntry(t *testing.T) {
	provided := func(w *world) {
		w.cluster.Buffers.List = []nodepool.Buffer{{Name: nameOf("uid", "gpu"), Group: "gpu", Pods: 2, Template: "v1", Provided: true}}
	}
	scheduled := func(open bool) capacity.WarmNodes {
		return capacity.WarmNodes{Group: "gpu", Schedules: []capacity.Schedule{{Count: 2, Window: fixed(open)}}}
	}
	two := capacity.WarmNodes{Group: "gpu", Count: 2}
	for name, c := range map[string]struct {
		change func(w *world)
		want   string // asked/count code of each entry
		says   string
		writes []string
	}{
		"they are there":              {provided, "2/2 warm", "nodes for 2 of 2 workers of group gpu", nil},
		"a schedule applies":          {func(w *world) { provided(w); w.entries(scheduled(true)) }, "2/2 schedule", "by the schedule", nil},
		"no schedule applies":         {func(w *world) { w.entries(scheduled(false)) }, "", "", nil},
		"the autoscaler is silent":    {func(*world) {}, "2/2 nodes_waiting", "has not answered", []string{"gpu 2 v1"}},
		"entries add up to the most":  {func(w *world) { w.desired = 1; w.entries(two, two) }, "2/2 nodes_waiting, 1/2 at_max", "has or launches 1 of at most 4 workers", []string{"gpu 3 v1"}},
		"the group is over its most":  {func(w *world) { w.desired = 9 }, "0/2 at_max", "", nil},
		"there is no such group":      {func(w *world) { w.entries(capacity.WarmNodes{Group: "tpu", Count: 1}) }, "0/1 no_group", `no worker group "tpu"`, nil},
		"a worker has several hosts":  {func(w *world) { w.cluster.Groups[0].NumOfHosts, w.desired = 4, 9 }, "1/2 at_max", "has or launches 3 of at most 4 workers", []string{"gpu 4 v1"}},
		"the group cannot be planned": {func(w *world) { w.cluster.Groups[0].Broken = true }, "0/2 nodes_unavailable", "cannot be planned", nil},
		"the group is suspended":      {func(w *world) { w.cluster.Groups[0].Suspended = true }, "0/2 nodes_unavailable", "is suspended", nil},
		"a queued RayCluster":         {func(w *world) { w.cluster.Queue.Mark = "label" }, "0/2 nodes_unavailable", "no quota covers nodes", nil},
		"it is off":                   {func(w *world) { w.cluster.Buffers = nil }, "0/2 nodes_unavailable", "asks for no nodes", nil},
		"it is not served":            {func(w *world) { w.cluster.Buffers.Missing = "no such API" }, "0/2 nodes_unavailable", "no such API", nil},
		"it is not read yet":          {func(w *world) { w.cluster.Buffers.Unread = "not read" }, "0/2 nodes_unavailable", "not read", nil},
	} {
		w := newWorld()
		c.change(w)
		o := w.round(t, name, c.writes...)
		lines, last := []string{}, ""
		for _, n := range o.WarmNodes {
			last = n.Message
			lines = append(lines, fmt.Sprintf("%d/%d %s", n.Asked, n.Count, n.Code))
		}
		if got := strings.Join(lines, ", "); got != c.want || !strings.Contains(last, c.says) {
			t.Errorf("%s: %s, %q; want %s, %q", name, got, last, c.want, c.says)
		}
		unused := w.cluster.Buffers == nil || w.cluster.Buffers.Missing != "" || w.cluster.Queue.Queued()
		if has(o, capacity.FindingNodesUnused) != unused {
			t.Errorf("%s: findings %+v", name, o.Findings)
		}
	}
}

func TestNothingIsTouchedOnDoubt(t *testing.T) {
	w := newWorld()
	w.round(t, "at first", "gpu 2 v1")
	known := w.cluster.Buffers
	w.cluster.Buffers = &nodepool.Buffers{Unread: "not read", Templates: known.Templates, List: known.List}
	w.round(t, "buffers are unknown")
	w.cluster.Buffers = known
	w.entries(capacity.WarmNodes{Group: "gpu", Count: 1})
	w.withheld = true
	if o := w.round(t, "the patch of this cycle was not written"); has(o, capacity.FindingNodesLeft) {
		t.Errorf("findings %+v", o.Findings)
	}
}

func TestBuffersAreHandedBackByTheProcessThatMadeThem(t *testing.T) {
	for why, left := range map[string]bool{addon.AsAsked: false, addon.NotAsked: false, addon.QueuedByKueue: false,
		addon.Suspended: false, addon.Frozen: true, addon.SidecarManages: true} {
		w := newWorld()
		w.round(t, "at first", "gpu 2 v1")
		made := *w.cluster.Buffers
		w.mode, w.why = nodepool.Shadow, why
		want := []string{"remove gpu"}
		if left {
			want = nil
		}
		if o := w.round(t, why, want...); has(o, capacity.FindingNodesLeft) != left {
			t.Errorf("%s: findings %+v", why, o.Findings)
		}
		w.cluster.Buffers, w.managed = &made, false
		if why != addon.Suspended { // its nodes are of no use to anybody
			want = nil
		}
		if o := w.round(t, why+": another process made it", want...); has(o, capacity.FindingNodesLeft) != (want == nil) {
			t.Errorf("%s: findings %+v", why, o.Findings)
		}
	}
}
