package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// stockOfGPUs is one node with so many GPUs, to which nothing can be added.
func stockOfGPUs(gpus int64) *landing.Nodes {
	nodes := []landing.Node{{Name: "n1", Pool: "p", Ready: true, Use: &landing.Use{},
		Allocatable: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(gpus)}}}
	none := int64(0)
	rooms := []landing.Room{{Pool: "p", Nodes: 1, MaxNodes: new(int64), MayAddNodes: &none}}
	return landing.NodesOf(nodes, landing.Pools{Rooms: rooms})
}

// another is a decision about another RayCluster that has so many pods on their way.
func another(name string, pods int, at time.Time, priority int32) *addon.Decision {
	d := &addon.Decision{Cluster: nodepool.ClusterKey{Namespace: "ml", Name: name}, At: at}
	d.Kube.Head.Priority = priority
	d.Kube.Groups = []nodepool.WorkerGroup{{Name: "gpu", Pod: landing.PodShape{Requests: landing.Quantities{"nvidia.com/gpu": raydemand.One}}}}
	for range pods {
		d.Snapshot.Nodes = append(d.Snapshot.Nodes, planner.Node{Group: "gpu", State: planner.Pending})
	}
	return d
}

// besideOthers has a group that can only use the four GPUs of one node.
func besideOthers(t *testing.T, more ...nodepool.WorkerGroup) *world {
	t.Helper()
	group := gpuGroup("gpu", 0, 0, 9)
	group.Pod.Requests = landing.Quantities{"nvidia.com/gpu": raydemand.One}
	w := newWorld(t, Config{}, append([]nodepool.WorkerGroup{group}, more...)...)
	stock := stockOfGPUs(4)
	w.kube.cluster.Stock = stock
	places, pods := stock.Places([]landing.Kind{stock.KindOf("gpu", &group.Pod)})
	w.kube.cluster.Places, w.kube.cluster.Groups[0].Kind = places, &pods[0]
	return w
}

// promised counts the pods that the RayCluster of this world has on its way before another one.
func (w *world) promised() (pods int64) {
	for _, p := range w.c.promises.Before(&nodepool.Cluster{Key: nodepool.ClusterKey{Namespace: "ml", Name: "late"}}, w.now) {
		if p.RayCluster == key {
			pods += p.Pods
		}
	}
	return pods
}

func TestRayClustersDoNotCountOnTheSameLastCards(t *testing.T) {
	tests := []struct {
		name  string
		other func(now time.Time) *addon.Decision
		want  int
		code  string
	}{
		{"nobody else has pods on their way", func(now time.Time) *addon.Decision { return another("b", 0, now, 0) }, 4, planner.CodeLaunch},
		{"another one asked first", func(now time.Time) *addon.Decision { return another("b", 3, now.Add(-time.Minute), 0) }, 1, planner.CodeLaunch},
		{"another one has all of them", func(now time.Time) *addon.Decision { return another("b", 4, now.Add(-time.Minute), 0) }, 0, planner.CodePoolPromised},
		{"another one has a lower priority", func(now time.Time) *addon.Decision { return another("b", 4, now.Add(-time.Minute), -1) }, 4, planner.CodeLaunch},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := besideOthers(t)
			w.c.promises.Publish(test.other(w.now), w.now)
			w.want(9, gpu(1))
			d := w.after(time.Second)
			if got := d.Plan.Launch["gpu"]; got != test.want {
				t.Errorf("launches %d, want %d: %+v", got, test.want, d.Plan.Groups)
			}
			if !slices.ContainsFunc(d.Plan.Groups[0].Reasons, func(r planner.Reason) bool { return r.Code == test.code }) {
				t.Errorf("reasons %+v, want %s", d.Plan.Groups[0].Reasons, test.code)
			}
			w.operate()
			w.after(time.Second)
			if got := w.promised(); got != int64(test.want) {
				t.Errorf("%d pods are promised to it, want %d", got, test.want)
			}
		})
	}
}

// TestWhatIsBeingLaunchedIsPromised looks while the patch is written: other RayClusters decide meanwhile.
func TestWhatIsBeingLaunchedIsPromised(t *testing.T) {
	w := besideOthers(t)
	w.want(9, gpu(1))
	var meanwhile int64
	w.kube.writing = func() { meanwhile = w.promised() }
	w.after(time.Second)
	if meanwhile != 4 {
		t.Errorf("%d pods are promised while the patch is written, want 4", meanwhile)
	}
}

// TestARemovalDoesNotForgetThePromises has an idle worker beside demand that waits for others: before the worker is
// drained, the RayCluster is read and planned once more.
func TestARemovalDoesNotForgetThePromises(t *testing.T) {
	idle := gpuGroup("cpu", 1, 0, 1)
	idle.Resources = raydemand.Bundle{raydemand.CPU: raydemand.One}
	w := besideOthers(t, idle)
	w.c.promises.Publish(another("b", 4, w.now, 0), w.now)
	w.want(9, gpu(1))
	w.kube.freshReads = 0
	d := w.after(2 * time.Minute)
	if w.kube.freshReads == 0 || len(w.ray.drained()) != 1 {
		t.Fatalf("%d fresh reads, drained %v: nothing was confirmed", w.kube.freshReads, w.ray.drained())
	}
	if got := d.Plan.Launch["gpu"]; got != 0 || w.group("gpu").Replicas != 0 {
		t.Errorf("launches %d, %d replicas, although all GPUs are promised to another", got, w.group("gpu").Replicas)
	}
}

// TestTheLineOfPromisesIsThatOfAllEntries compares the kept line with one made anew after each drawn change, and checks
// that what a reading was given never changes.
func TestTheLineOfPromisesIsThatOfAllEntries(t *testing.T) {
	draw := rand.New(rand.NewPCG(7, 8))
	var registry promises
	given := map[string][]*nodepool.Promise{}
	for i := range 2000 {
		name := fmt.Sprint(draw.IntN(8))
		switch draw.IntN(6) {
		case 0:
			registry.Forget(keyOf(name))
		case 1:
			registry.Publish(asks(name, i, 0, waitingCluster), afterStart)
		default:
			registry.Publish(asks(name, i, draw.IntN(4), withPriority(draw.Int32N(2)), podsFrom(draw.IntN(50))), afterStart)
		}
		own := ranked(fmt.Sprint(draw.IntN(10)), draw.Int32N(2))
		if draw.IntN(2) == 0 {
			own.Workers = asks(own.Key.Name, i, 1, podsFrom(draw.IntN(50))).Pods.Get()
		}
		got := registry.Before(own, afterStart.Add(keptFor))
		registry.line = nil
		if again := registry.Before(own, afterStart.Add(keptFor)); text(got) != text(again) {
			t.Fatalf("change %d: promises %q, want %q", i, text(got), text(again))
		}
		if slices.ContainsFunc(got, func(p *nodepool.Promise) bool { return p.RayCluster == own.Key }) {
			t.Fatalf("change %d: the own promise comes before it: %q", i, text(got))
		}
		for was, promises := range given {
			if text(promises) != was {
				t.Fatalf("change %d: what a reading was given became %q, was %q", i, text(promises), was)
			}
		}
		if i%50 == 0 {
			given[text(got)] = got
		}
	}
	if len(given) < 20 {
		t.Errorf("%d different answers were given, want at least 20: the draws show too little", len(given))
	}
}

func TestWhatAnotherProcessHasOnItsWayIsReadFromItsPodsAndReplicas(t *testing.T) {
	other := &nodepool.Cluster{Key: keyOf("other"), Groups: []nodepool.WorkerGroup{
		{Name: "gpu", Replicas: 3, Max: 9, NumOfHosts: 2}, {Name: "cpu", Replicas: 1, Max: 9, NumOfHosts: 1},
	}, Workers: []nodepool.Worker{
		{Pod: "a", Group: "gpu", CreatedAt: start},
		{Pod: "b", Group: "gpu", CreatedAt: start, Counted: true, Running: true},
		{Pod: "c", Group: "gpu", CreatedAt: start, Terminating: true},
		{Pod: "d", Group: "cpu", CreatedAt: start, Counted: true},
	}}
	own := ranked("own", 0)
	var r promises
	r.Note(other, start)
	before := r.Before(own, afterStart)
	if len(before) != 1 || before[0].Group != "gpu" || before[0].Pods != 5 {
		t.Errorf("promised are %v, want 5 pods of gpu: one that waits and four that the operator has not made", before)
	}
	for what, c := range map[string]struct {
		set  *bool
		want int64 // the pods that wait and exist, unless the operator makes none
	}{
		"a suspended RayCluster":           {&other.Suspended, 0},
		"a RayCluster that is deleted":     {&other.Deleting, 0},
		"one managed elsewhere":            {&other.ManagedElsewhere, 0},
		"a suspended group":                {&other.Groups[0].Suspended, 1},
		"a broken group":                   {&other.Groups[0].Broken, 1},
		"a spec that the operator rejects": {&other.Refused, 1},
	} {
		*c.set = true
		r.Note(other, start)
		got := int64(0)
		for _, p := range r.Before(own, afterStart.Add(keptFor)) {
			got += p.Pods
		}
		if got != c.want {
			t.Errorf("%s has %d pods on its way, want %d", what, got, c.want)
		}
		*c.set = false
	}
}

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
			d.Pods = addon.LatestOf(append(d.Pods.Get(), nodepool.Worker{Pod: n.Pod, CreatedAt: start.Add(time.Duration(second+i) * time.Second)}))
		}
	}
}

// readAgain returns the RayCluster of a decision with its pods, as the next cycle reads it.
func readAgain(d *addon.Decision) *nodepool.Cluster {
	cluster := d.Kube
	cluster.Key, cluster.Workers = d.Cluster, d.Pods.Get()
	return &cluster
}

func createdAt(second int) func(*addon.Decision) {
	return func(d *addon.Decision) { d.Kube.CreatedAt = start.Add(time.Duration(second) * time.Second) }
}

func waitingCluster(d *addon.Decision) {
	d.Plan.Groups = []planner.GroupPlan{{Name: "gpu", Reasons: []planner.Reason{{Code: planner.CodePoolPromised}}}}
}

func text(promises []*nodepool.Promise) string {
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
			d.Pods = addon.LatestOf(append(d.Pods.Get(), nodepool.Worker{Pod: "x", Node: "n", Counted: true, CreatedAt: start}))
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
					own.Workers, own.CreatedAt = d.Pods.Get(), d.Kube.CreatedAt
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
		d.Pods = addon.LatestOf([]nodepool.Worker{{Pod: "b0", Node: "n1", Counted: true}, {Pod: "b1", Gated: true}, {Pod: "b2"}, {Pod: "b4", Node: "n1"}, {Pod: "b5", Node: "n1", Uncounted: true}})
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
