package capacity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// world is a RayCluster with group gpu, whose policy wants nodes for two workers, and the buffers that were written.
type world struct {
	Writer
	keeper  NodeKeeper
	cluster nodepool.Cluster
	now     time.Time
	desired int
	follows bool   // another process may write
	err     error  // fails every write
	failing string // the group whose writes fail
	writes  []string
}

func newWorld() *world {
	price := 6.0
	return &world{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), cluster: nodepool.Cluster{
		Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, UID: "uid",
		Groups: []nodepool.WorkerGroup{{Name: "gpu", Max: 4, Price: &price}},
		Policy: &capacity.Written{Source: "annotation", Policy: capacity.Policy{
			KeepWarmNodes: []capacity.WarmNodes{{Group: "gpu", Count: 2}}}},
		Buffers: &nodepool.Buffers{Templates: map[string]string{"gpu": "v1"}},
	}}
}

func (w *world) MayWrite(nodepool.ClusterKey) bool { return !w.follows }

func (w *world) KeepNodes(_ context.Context, c nodepool.BufferChange) error {
	if w.err != nil {
		return w.err
	}
	if c.Buffer.Group == w.failing {
		return errors.New("Heliostat did not make it")
	}
	line := fmt.Sprintf("%s %d %s", c.Buffer.Group, c.Buffer.Pods, c.Buffer.Template)
	if c.Remove {
		line = "remove " + c.Buffer.Group
	}
	w.writes = append(w.writes, line)
	b := *w.cluster.Buffers
	b.List = slices.DeleteFunc(slices.Clone(b.List), func(o nodepool.Buffer) bool { return o.Name == c.Buffer.Name })
	if !c.Remove {
		c.Buffer.Provided = true
		b.List = append(b.List, c.Buffer)
	}
	w.cluster.Buffers = &b
	return nil
}

// round runs one cycle and expects these writes.
func (w *world) round(t *testing.T, when string, a Authority, want ...string) NodesDecision {
	t.Helper()
	w.writes = nil
	g := w.cluster.Groups
	snapshot, plan := planner.Snapshot{}, planner.Plan{}
	for i := range g {
		snapshot.Groups = append(snapshot.Groups, planner.Group{Name: g[i].Name, Max: g[i].Max,
			Price: g[i].Price, NumOfHosts: g[i].NumOfHosts})
		plan.Groups = append(plan.Groups, planner.GroupPlan{Name: g[i].Name, Desired: w.desired})
	}
	d, _ := w.keeper.Round(context.Background(), w.MayWrite, w, a, Seen{Now: w.now, Cluster: &w.cluster, Snapshot: &snapshot,
		Plan: &plan})
	if !slices.Equal(w.writes, want) {
		t.Errorf("%s: wrote %q, want %q", when, w.writes, want)
	}
	w.now = w.now.Add(time.Second)
	return d
}

func has(d NodesDecision, code string) bool {
	return slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == code })
}

func TestABufferFollowsThePolicyAndTheGroup(t *testing.T) {
	w := newWorld()
	w.round(t, "at first", Keep, "gpu 2 v1")
	w.round(t, "at rest", Keep)
	w.cluster.Buffers.Templates = map[string]string{"gpu": "v2"}
	w.round(t, "another template", Keep, "gpu 2 v2")
	w.cluster.Policy.KeepWarmNodes[0].Count = 3
	w.round(t, "another count", Keep, "gpu 3 v2")
	w.desired = 3
	w.round(t, "the group can launch one more", Keep, "gpu 1 v2")
	w.desired = 4
	w.round(t, "the group is at its maximum", Keep, "remove gpu")
	w.desired = 0
	w.round(t, "workers have gone", Keep, "gpu 3 v2")
	w.cluster.Policy = nil
	w.round(t, "the policy has gone", Keep, "remove gpu")
}

func TestNodesAreAskedForWorkersThatTheGroupMayLaunch(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world)
		writes []string
		says   string
	}{
		{"a worker of several hosts is a replica", func(w *world) { w.cluster.Groups[0].NumOfHosts, w.desired = 4, 9 },
			[]string{"gpu 4 v1"}, "has or launches 3 of at most 4 workers"},
		{"a group that cannot be planned", func(w *world) { w.cluster.Groups[0].Broken = true }, nil, "cannot be planned"},
		{"a suspended group", func(w *world) { w.cluster.Groups[0].Suspended = true }, nil, "is suspended"},
		{"a queued RayCluster", func(w *world) { w.cluster.Queue.Mark = "label" }, nil, "no quota covers nodes"},
		{"what finds room", func(w *world) {
			w.cluster.Groups[0].Kind = &landing.Pod{Name: "gpu", Requests: landing.Quantities{"pods": raydemand.One}}
			w.cluster.Places = []landing.Place{{Nodes: new(int64(1)), Accepts: []string{"gpu"},
				Free: landing.Quantities{"pods": raydemand.One}}}
		}, []string{"gpu 2 v1"}, "room for 1 now"},
	} {
		w := newWorld()
		c.change(w)
		if d := w.round(t, c.name, Keep, c.writes...); !strings.Contains(d.Plans[0].Message, c.says) {
			t.Errorf("%s: %q, want %q", c.name, d.Plans[0].Message, c.says)
		}
	}
}

func TestAQueuedRayClusterSaysThatItHasNoNodes(t *testing.T) {
	w := newWorld()
	w.cluster.Queue.Mark = "label"
	d := w.round(t, "queued", Keep)
	if !has(d, capacity.FindingNodesUnused) || !strings.Contains(d.Findings[0].Fix, "queue") {
		t.Errorf("findings %+v", d.Findings)
	}
}

func TestABufferThatIsBeingDeletedIsNotDeletedAgain(t *testing.T) {
	w := newWorld()
	w.round(t, "at first", Keep, "gpu 2 v1")
	w.cluster.Buffers.List[0].Deleting = true
	w.cluster.Policy = nil
	w.round(t, "no policy wants it", Keep)
	w.round(t, "suspended", Release)
}

func TestBuffersThatAreUnknownAreNotHandedBack(t *testing.T) {
	w := newWorld()
	w.round(t, "at first", Keep, "gpu 2 v1")
	w.cluster.Buffers.Missing = "the API server does not serve capacitybuffers"
	w.round(t, "suspended", Release)
}

func TestNodesThatNoEntryWantsGoBeforeOthersCome(t *testing.T) {
	w := newWorld()
	other := w.cluster.Groups[0]
	other.Name = "other"
	w.cluster.Groups = append(w.cluster.Groups, other)
	w.cluster.Buffers.Templates["other"] = "v1"
	w.round(t, "at first", Keep, "gpu 2 v1")
	w.cluster.Policy.KeepWarmNodes[0].Group = "other"
	w.round(t, "for another group", Keep, "remove gpu", "other 2 v1")
}

func TestAConflictIsNoFailure(t *testing.T) {
	for _, err := range []error{nodepool.ErrConflict, nodepool.ErrGone} {
		w := newWorld()
		w.err = fmt.Errorf("writing: %w", err)
		if d := w.round(t, "conflict", Keep); has(d, Unwritten) || w.keeper.err != nil {
			t.Errorf("%v: findings %+v", err, d.Findings)
		}
		w.err = nil
		w.round(t, "at once", Keep, "gpu 2 v1")
	}
}

func TestAProcessThatMayNotWriteWritesNothing(t *testing.T) {
	w := newWorld()
	w.follows = true
	if d := w.round(t, "another process leads", Keep); has(d, Unwritten) {
		t.Errorf("findings %+v", d.Findings)
	}
}

func TestABufferGoesWithItsGroup(t *testing.T) {
	w := newWorld()
	w.round(t, "at first", Keep, "gpu 2 v1")
	w.cluster.Groups[0].Name = "other"
	if d := w.round(t, "renamed", Keep, "remove gpu"); !has(d, capacity.FindingGroupUnknown) {
		t.Errorf("findings %+v", d.Findings)
	}
}

func TestNothingIsTouchedOnDoubt(t *testing.T) {
	w := newWorld()
	w.round(t, "at first", Keep, "gpu 2 v1")
	known := w.cluster.Buffers
	w.cluster.Buffers = &nodepool.Buffers{Unread: "not read", Templates: known.Templates}
	w.round(t, "buffers are unknown", Keep)
	w.cluster.Buffers = known
	w.cluster.Policy.KeepWarmNodes[0].Count = 1
	if d := w.round(t, "the patch of this cycle was not written", Wait); has(d, capacity.FindingNodesLeft) {
		t.Errorf("findings %+v", d.Findings)
	}
	w.round(t, "in shadow", Plan)
	if d := w.round(t, "in shadow", Plan); !has(d, capacity.FindingNodesLeft) {
		t.Errorf("a buffer that stays is not reported: %+v", d.Findings)
	}
}

func TestBuffersAreHandedBack(t *testing.T) {
	w := newWorld()
	w.round(t, "at first", Keep, "gpu 2 v1")
	made := *w.cluster.Buffers
	w.round(t, "no longer managed", ReleaseOwn, "remove gpu")
	w.cluster.Buffers, w.keeper = &made, NodeKeeper{}
	w.round(t, "another process made it", ReleaseOwn)
	w.round(t, "suspended", Release, "remove gpu")
}

func TestWithoutCapacityBuffersAFindingSaysSo(t *testing.T) {
	w := newWorld()
	w.cluster.Buffers = nil
	if d := w.round(t, "switched off", Keep); !has(d, capacity.FindingNodesUnused) || d.Plans[0].Code != capacity.NodesUnavailable {
		t.Errorf("%+v", d)
	}
	w.cluster.Buffers = &nodepool.Buffers{Missing: "the API server does not serve capacitybuffers"}
	d := w.round(t, "not served", Keep)
	if !has(d, capacity.FindingNodesUnused) || !strings.Contains(d.Findings[0].Why, "does not serve") {
		t.Errorf("%+v", d)
	}
	w.cluster.Policy = nil
	if d := w.round(t, "no policy", Keep); len(d.Findings) > 0 {
		t.Errorf("%+v", d.Findings)
	}
}

func TestWritesThatFailAreReportedAndPaused(t *testing.T) {
	w := newWorld()
	w.err = errors.New("forbidden")
	tries := 0
	for range 60 {
		before := w.keeper.rest.Failures()
		if d := w.round(t, "failing", Keep); !has(d, Unwritten) || (w.keeper.err == nil) {
			t.Fatalf("findings %+v", d.Findings)
		}
		tries += w.keeper.rest.Failures() - before
	}
	if tries < 2 || tries > 8 {
		t.Errorf("%d writes in a minute, want a few", tries)
	}
	w.err, w.now = nil, w.now.Add(time.Hour)
	if d := w.round(t, "allowed", Keep, "gpu 2 v1"); has(d, Unwritten) {
		t.Error("the finding stays")
	}
}

func TestAWriteThatFailsDelaysNoRemoval(t *testing.T) {
	w := newWorld()
	other := w.cluster.Groups[0]
	other.Name = "other"
	w.cluster.Groups = append(w.cluster.Groups, other)
	w.cluster.Policy.KeepWarmNodes = append(w.cluster.Policy.KeepWarmNodes, capacity.WarmNodes{Group: "other", Count: 1})
	w.cluster.Buffers.Templates["other"] = "v1"
	w.failing = "gpu"
	if d := w.round(t, "one of two cannot be written", Keep, "other 1 v1"); !has(d, Unwritten) || (w.keeper.err == nil) {
		t.Errorf("findings %+v", d.Findings)
	}
	w.round(t, "the pause grows", Keep)
	w.round(t, "the pause grows", Keep)
	w.cluster.Policy.KeepWarmNodes = w.cluster.Policy.KeepWarmNodes[:1]
	w.round(t, "in the pause", Keep)
	w.now = w.now.Add(time.Minute)
	if d := w.round(t, "after it", Keep, "remove other"); !has(d, Unwritten) {
		t.Errorf("findings %+v", d.Findings)
	}
	w.failing, w.now = "", w.now.Add(time.Minute)
	if d := w.round(t, "it can be written", Keep, "gpu 2 v1"); has(d, Unwritten) || w.keeper.err != nil {
		t.Errorf("findings %+v", d.Findings)
	}
}
