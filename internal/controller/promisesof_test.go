package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// afterStart is when readings begin: after all that is published at the start.
var afterStart = start.Add(time.Second)

func keyOf(name string) nodepool.ClusterKey {
	return nodepool.ClusterKey{Namespace: "ml", Name: name}
}

// asks returns a decision in which a RayCluster has so many pods on their way.
func asks(name string, second, pods int, change ...func(*addon.Decision)) *addon.Decision {
	d := &addon.Decision{Cluster: keyOf(name), At: start.Add(time.Duration(second) * time.Second)}
	d.Kube.Groups = []nodepool.WorkerGroup{{Name: "cpu", NumOfHosts: 1}, {Name: "gpu", NumOfHosts: 2}}
	for i := range pods {
		d.Snapshot.Nodes = append(d.Snapshot.Nodes, planner.Node{Pod: fmt.Sprint(name, i), Group: "gpu", State: planner.Pending})
	}
	for _, c := range change {
		c(d)
	}
	return d
}

func ranked(name string, priority int32) *nodepool.Cluster {
	cluster := &nodepool.Cluster{Key: keyOf(name)}
	cluster.Head.Priority = priority
	return cluster
}

func withPriority(value int32) func(*addon.Decision) {
	return func(d *addon.Decision) { d.Kube.Head.Priority = value }
}

// podsFrom gives the decision's pods on their way these ages: the first is from that second, each other one second
// afterStart.
func podsFrom(second int) func(*addon.Decision) {
	return func(d *addon.Decision) {
		for i, n := range d.Snapshot.Nodes {
			d.Pods = addon.PodsOf(append(d.Pods.List(), nodepool.Worker{Pod: n.Pod, CreatedAt: start.Add(time.Duration(second+i) * time.Second)}))
		}
	}
}

// readAgain returns the RayCluster of a decision with its pods, as the next cycle reads it.
func readAgain(d *addon.Decision) *nodepool.Cluster {
	cluster := d.Kube
	cluster.Key, cluster.Workers = d.Cluster, d.Pods.List()
	return &cluster
}

func createdAt(second int) func(*addon.Decision) {
	return func(d *addon.Decision) { d.Kube.CreatedAt = start.Add(time.Duration(second) * time.Second) }
}

func waitingCluster(d *addon.Decision) {
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
		decisions []*addon.Decision
		priority  int32
		want      string
	}{
		{"who asks now comes after all others", []*addon.Decision{asks("b", 2, 2), asks("a", 5, 1)}, 0, "b/gpu 2, a/gpu 1"},
		{"a higher priority comes first", []*addon.Decision{asks("b", 2, 2), asks("a", 5, 1, withPriority(9))}, 0, "a/gpu 1, b/gpu 2"},
		{"one with a higher priority waits for nobody below", []*addon.Decision{asks("b", 2, 2, withPriority(3)), asks("a", 5, 1, withPriority(9))}, 5, "a/gpu 1"},
		{"who asked before keeps the place", []*addon.Decision{asks("own", 1, 1), asks("b", 2, 2), asks("own", 3, 1)}, 0, ""},
		{"who waits has nothing on its way, so what others have comes first", []*addon.Decision{asks("own", 1, 0, waitingCluster), asks("b", 2, 2)}, 0, "b/gpu 2"},
		{"the oldest pod on its way decides, not who is read first", []*addon.Decision{asks("own", 1, 1, podsFrom(30)), asks("b", 2, 2, podsFrom(10)), asks("a", 3, 1, podsFrom(20))}, 0,
			"b/gpu 2, a/gpu 1"},
		{"and those whose pods are younger come afterStart", []*addon.Decision{asks("b", 1, 2, podsFrom(40)), asks("own", 2, 1, podsFrom(30)), asks("a", 3, 1, podsFrom(20))}, 0, "a/gpu 1"},
		{"a pod that a node counts is not on its way", []*addon.Decision{asks("own", 1, 1, podsFrom(30)), asks("b", 2, 2, podsFrom(40), func(d *addon.Decision) {
			d.Pods = addon.PodsOf(append(d.Pods.List(), nodepool.Worker{Pod: "x", Node: "n", Counted: true, CreatedAt: start}))
		})}, 0, ""},
		{"what another process asked for comes before pods that exist", []*addon.Decision{asks("own", 1, 1, podsFrom(50)), asks("b", 2, 2)}, 0, "b/gpu 2"},
		{"and by the age of the RayClusters", []*addon.Decision{asks("own", 1, 1, createdAt(5)), asks("b", 2, 2, createdAt(3)), asks("a", 3, 2, createdAt(9))}, 0, "b/gpu 2"},
		{"who stops asking loses the place", []*addon.Decision{asks("own", 1, 1), asks("b", 2, 2), asks("own", 3, 0), asks("own", 4, 1)}, 0, "b/gpu 2"},
		{"what has arrived is no promise", []*addon.Decision{asks("b", 1, 2), asks("b", 2, 0)}, 0, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var registry promises
			own := ranked("own", test.priority)
			for _, d := range test.decisions {
				registry.Publish(d, start)
				if d.Cluster == own.Key {
					own.Workers, own.CreatedAt = d.Pods.List(), d.Kube.CreatedAt
				}
			}
			if got := text(registry.Before(own, afterStart)); got != test.want {
				t.Errorf("promises %q, want %q", got, test.want)
			}
		})
	}
}

func TestPodsOnTheirWayAreThoseWithoutANode(t *testing.T) {
	d := asks("b", 0, 6, func(d *addon.Decision) {
		d.Pods = addon.PodsOf([]nodepool.Worker{{Pod: "b0", Node: "n1", Counted: true}, {Pod: "b1", Gated: true}, {Pod: "b2"}, {Pod: "b4", Node: "n1"}, {Pod: "b5", Node: "n1", Uncounted: true}})
		d.Snapshot.Nodes[3].State, d.Snapshot.Nodes[5].State = planner.Running, planner.Running
		d.Actions = []addon.Action{
			{Kind: addon.ActionPatch, Result: addon.ResultOK, Group: "gpu", From: 1, To: 3},
			{Kind: addon.ActionPatch, Result: addon.ResultOK, Group: "cpu", From: 3, To: 2},
			{Kind: addon.ActionPatch, Result: addon.ResultConflict, Group: "cpu", From: 1, To: 9},
		}
	})
	var registry promises
	registry.Publish(d, start)
	promises := registry.Before(ranked("own", 0), afterStart)
	if got := text(promises); got != "b/gpu 7" || promises[0].Shape != &d.Kube.Groups[1].Pod {
		t.Errorf("promises %q: want three that no node counts, and two replicas of two pods", got)
	}
	registry.Forget(keyOf("b"))
	if got := text(registry.Before(ranked("own", 0), afterStart)); got != "" {
		t.Errorf("a RayCluster that is gone still promises %q", got)
	}
}

func TestWhatTwoReserveAtTheSameTimeIsNotTheSame(t *testing.T) {
	cluster := func(name string) *nodepool.Cluster {
		return &nodepool.Cluster{Key: keyOf(name), Groups: []nodepool.WorkerGroup{{Name: "cpu"}, {Name: "gpu"}}}
	}
	var registry promises
	first, second := registry.Before(ranked("a", 0), afterStart), registry.Before(ranked("own", 0), afterStart)
	if !registry.Reserve(cluster("a"), map[string]int{"gpu": 3}, first, afterStart) {
		t.Fatal("the first does not get what nobody else has asked for")
	}
	if registry.Reserve(cluster("own"), map[string]int{"gpu": 3}, second, afterStart) {
		t.Error("the second reserves although more comes before it than it knew")
	}
	again := registry.Before(ranked("own", 0), afterStart)
	if got := text(again); got != "a/gpu 3" {
		t.Errorf("promises %q before the second, want what the first reserved", got)
	}
	if !registry.Reserve(cluster("own"), map[string]int{"gpu": 1}, again, afterStart) {
		t.Error("the second may not reserve although it knows what comes before it")
	}
	registry.Publish(asks("a", 1, 2), start)
	if !registry.Reserve(cluster("own"), map[string]int{"cpu": 1, "gpu": 1}, again, afterStart) {
		t.Error("the second may not reserve although less comes before it than it knew")
	}
	if got := text(registry.Before(ranked("late", 0), afterStart)); got != "a/gpu 2, own/gpu 2, own/cpu 1" {
		t.Errorf("promises %q, want what was reserved, and of the first what it published", got)
	}
}

// TestANewProcessKeepsTheOrder publishes the same decisions in all orders to registries that know nothing yet.
func TestANewProcessKeepsTheOrder(t *testing.T) {
	decisions := []*addon.Decision{asks("a", 1, 1, podsFrom(20)), asks("b", 1, 1, podsFrom(10)), asks("c", 1, 1, createdAt(1))}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		var registry promises
		for _, i := range order {
			registry.Publish(decisions[i], start)
		}
		if got := text(registry.Before(ranked("late", 0), afterStart)); got != "c/gpu 1, b/gpu 1, a/gpu 1" {
			t.Errorf("read in the order %v: promises %q", order, got)
		}
		for i, want := range []string{"c/gpu 1, b/gpu 1", "c/gpu 1", ""} {
			d := decisions[i]
			if got := text(registry.Before(readAgain(d), afterStart)); got != want {
				t.Errorf("read in the order %v: %q before %s, want %q", order, got, d.Cluster, want)
			}
		}
	}
}

// TestARayClusterWithPodsOnTheirWayKeepsItsPlaceBeforeItAsks is the first cycle of a new process.
func TestARayClusterWithPodsOnTheirWayKeepsItsPlaceBeforeItAsks(t *testing.T) {
	var registry promises
	registry.Publish(asks("b", 1, 1, podsFrom(20)), start)
	own := asks("own", 1, 1, podsFrom(10))
	if got := text(registry.Before(readAgain(own), afterStart)); got != "" {
		t.Errorf("promises %q before pods that are older", got)
	}
}

// TestAskingEarlierIsNotLostWhilePodsAreCreated has an operator that creates the pods of the first RayCluster last.
func TestAskingEarlierIsNotLostWhilePodsAreCreated(t *testing.T) {
	var registry promises
	cluster := func(name string) *nodepool.Cluster {
		return &nodepool.Cluster{Key: keyOf(name), Groups: []nodepool.WorkerGroup{{Name: "gpu"}}}
	}
	if !registry.Reserve(cluster("b"), map[string]int{"gpu": 1}, nil, start) {
		t.Fatal("the first may not reserve")
	}
	if !registry.Reserve(cluster("own"), map[string]int{"gpu": 1}, registry.Before(cluster("own"), afterStart), start.Add(time.Second)) {
		t.Fatal("the second may not reserve beside the first")
	}
	registry.Publish(asks("own", 3, 1, podsFrom(2)), start)
	registry.Publish(asks("b", 4, 1, podsFrom(3)), start)
	own := asks("own", 5, 1, podsFrom(2))
	if got := text(registry.Before(readAgain(own), afterStart)); got != "b/gpu 1" {
		t.Errorf("promises %q before the second, want what the first asked for earlier", got)
	}
}

// Its node shows a pod only in readings that begin after the decision that says so.
func TestWhatArrivesDuringAReadingIsStillPromised(t *testing.T) {
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	var registry promises
	registry.Publish(asks("b", 0, 3), at(0))
	registry.Publish(asks("b", 10, 1), at(10))
	registry.Publish(asks("b", 20, 0), at(20))
	registry.Publish(asks("a", 30, 2), at(30))
	for _, test := range []struct {
		readAt int
		want   string
	}{{5, "a/gpu 2, b/gpu 3"}, {11, "a/gpu 2, b/gpu 1"}, {21, "a/gpu 2"}} {
		if got := text(registry.Before(ranked("own", 0), at(test.readAt))); got != test.want {
			t.Errorf("promises %q for a reading of second %d, want %q", got, test.readAt, test.want)
		}
	}
	if got := text(registry.Before(ranked("own", 9), at(5))); got != "" {
		t.Errorf("promises %q before a RayCluster with a higher priority, want none", got)
	}
	registry.Publish(asks("c", 75, 0), at(75))
	if len(registry.kept) != 1 {
		t.Errorf("%d former promises are kept after 75 s, want that of second 20", len(registry.kept))
	}
}

// Cycles read the clock before they publish, and a afterStart one may publish first.
func TestWhatAnEarlierDecisionHadIsKeptAlsoIfItIsPublishedLate(t *testing.T) {
	var registry promises
	registry.Publish(asks("a", 1, 1), start)
	registry.Publish(asks("b", 1, 2), start)
	registry.Publish(asks("a", 2, 0), start.Add(2*time.Second))
	registry.Publish(asks("b", 2, 0), start)
	if got := text(registry.Before(ranked("own", 0), afterStart)); !strings.Contains(got, "a/gpu 1") {
		t.Errorf("promises %q, want those of a, which was counted after the reading began", got)
	}
}
