package promise

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func key(name string) nodepool.ClusterKey {
	return nodepool.ClusterKey{Namespace: "ml", Name: name}
}

// asks returns a decision in which a RayCluster has so many pods on their way.
func asks(name string, second, pods int, change ...func(*decision.Decision)) *decision.Decision {
	d := &decision.Decision{Cluster: key(name), At: start.Add(time.Duration(second) * time.Second)}
	d.Kube.Groups = []nodepool.WorkerGroup{{Name: "cpu", NumOfHosts: 1}, {Name: "gpu", NumOfHosts: 2}}
	for i := range pods {
		d.Snapshot.Nodes = append(d.Snapshot.Nodes, planner.Node{Pod: fmt.Sprint(name, i), Group: "gpu", State: planner.Pending})
	}
	for _, c := range change {
		c(d)
	}
	return d
}

func withPriority(value int32) func(*decision.Decision) {
	return func(d *decision.Decision) { d.Kube.Head.Priority = value }
}

func waiting(d *decision.Decision) {
	d.Plan.Groups = []planner.GroupPlan{{Name: "gpu", Reasons: []planner.Reason{{Code: planner.CodePoolPromised}}}}
}

func text(promises []nodepool.Promise) string {
	words := make([]string, len(promises))
	for i, p := range promises {
		words[i] = fmt.Sprintf("%s/%s %d", p.RayCluster.Name, p.Group, p.Pods)
	}
	return strings.Join(words, ", ")
}

func TestPromisesComeByPriorityThenByAge(t *testing.T) {
	tests := []struct {
		name      string
		decisions []*decision.Decision
		priority  int32
		want      string
	}{
		{"who asks now comes after all others", []*decision.Decision{asks("b", 2, 2), asks("a", 5, 1)}, 0, "b/gpu 2, a/gpu 1"},
		{"a higher priority comes first", []*decision.Decision{asks("b", 2, 2), asks("a", 5, 1, withPriority(9))}, 0, "a/gpu 1, b/gpu 2"},
		{"one with a higher priority waits for nobody below", []*decision.Decision{asks("b", 2, 2, withPriority(3)), asks("a", 5, 1, withPriority(9))}, 5, "a/gpu 1"},
		{"who asked before keeps the place", []*decision.Decision{asks("own", 1, 1), asks("b", 2, 2), asks("own", 3, 1)}, 0, ""},
		{"waiting for others counts as asking", []*decision.Decision{asks("own", 1, 0, waiting), asks("b", 2, 2)}, 0, ""},
		{"who stops asking loses the place", []*decision.Decision{asks("own", 1, 1), asks("b", 2, 2), asks("own", 3, 0), asks("own", 4, 1)}, 0, "b/gpu 2"},
		{"what has arrived is no promise", []*decision.Decision{asks("b", 1, 2), asks("b", 2, 0)}, 0, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var registry Registry
			for _, d := range test.decisions {
				registry.Publish(d)
			}
			if got := text(registry.Before(key("own"), test.priority)); got != test.want {
				t.Errorf("promises %q, want %q", got, test.want)
			}
		})
	}
}

func TestPodsOnTheirWayAreThoseWithoutANode(t *testing.T) {
	d := asks("b", 0, 6, func(d *decision.Decision) {
		d.Kube.Workers = []nodepool.Worker{{Pod: "b0", Node: "n1", Counted: true}, {Pod: "b1", Gated: true}, {Pod: "b2"}, {Pod: "b4", Node: "n1"}}
		d.Snapshot.Nodes[3].State = planner.Running
		d.Actions = []decision.Action{
			{Kind: decision.ActionPatch, Result: decision.ResultOK, Group: "gpu", From: 1, To: 3},
			{Kind: decision.ActionPatch, Result: decision.ResultOK, Group: "cpu", From: 3, To: 2},
			{Kind: decision.ActionPatch, Result: decision.ResultConflict, Group: "cpu", From: 1, To: 9},
		}
	})
	var registry Registry
	registry.Publish(d)
	promises := registry.Before(key("own"), 0)
	if got := text(promises); got != "b/gpu 7" || promises[0].Shape != &d.Kube.Groups[1].Pod {
		t.Errorf("promises %q: want three that no node counts, and two replicas of two pods", got)
	}
	registry.Forget(key("b"))
	if got := text(registry.Before(key("own"), 0)); got != "" {
		t.Errorf("a RayCluster that is gone still promises %q", got)
	}
}

func TestWhatTwoReserveAtTheSameTimeIsNotTheSame(t *testing.T) {
	cluster := func(name string) *nodepool.Cluster {
		return &nodepool.Cluster{Key: key(name), Groups: []nodepool.WorkerGroup{{Name: "cpu"}, {Name: "gpu"}}}
	}
	var registry Registry
	first, second := registry.Before(key("a"), 0), registry.Before(key("own"), 0)
	if !registry.Reserve(cluster("a"), map[string]int{"gpu": 3}, first) {
		t.Fatal("the first does not get what nobody else has asked for")
	}
	if registry.Reserve(cluster("own"), map[string]int{"gpu": 3}, second) {
		t.Error("the second reserves although more comes before it than it knew")
	}
	again := registry.Before(key("own"), 0)
	if got := text(again); got != "a/gpu 3" {
		t.Errorf("promises %q before the second, want what the first reserved", got)
	}
	if !registry.Reserve(cluster("own"), map[string]int{"gpu": 1}, again) {
		t.Error("the second may not reserve although it knows what comes before it")
	}
	registry.Publish(asks("a", 1, 2))
	if !registry.Reserve(cluster("own"), map[string]int{"cpu": 1, "gpu": 1}, again) {
		t.Error("the second may not reserve although less comes before it than it knew")
	}
	if got := text(registry.Before(key("late"), 0)); got != "a/gpu 2, own/gpu 2, own/cpu 1" {
		t.Errorf("promises %q, want what was reserved, and of the first what it published", got)
	}
}
