package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
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
	places, pods := stock.Places([]landing.Kind{stock.KindOf("gpu", &group.Pod)}, nil)
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

func TestARayClusterThatGetsNoPodsPromisesNone(t *testing.T) {
	for what, set := range map[string]func(*nodepool.Cluster){
		"suspended":              func(c *nodepool.Cluster) { c.Suspended = true },
		"deleted":                func(c *nodepool.Cluster) { c.Deleting = true },
		"managed somewhere else": func(c *nodepool.Cluster) { c.ManagedElsewhere = true },
	} {
		w := besideOthers(t)
		w.kube.cluster.Groups[0].Replicas = 4
		w.cycle()
		if got := w.promised(); got != 4 {
			t.Fatalf("promised are %d pods before it is %s, want 4", got, what)
		}
		set(&w.kube.cluster)
		w.cycle()
		w.pass(time.Minute)
		w.cycle()
		if got := w.promised(); got != 0 {
			t.Errorf("promised are %d pods of a RayCluster that is %s, want none: the operator makes none", got, what)
		}
	}
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

// TestWhatArrivesWhileRayIsReadStillTakesItsCards has another RayCluster whose pods arrive after the nodes were read,
// and that says so before this RayCluster is planned.
func TestWhatArrivesWhileRayIsReadStillTakesItsCards(t *testing.T) {
	w := besideOthers(t)
	w.want(9, gpu(1))
	w.c.promises.Publish(another("b", 4, w.now, 0), w.now)
	w.ray.reading = func() { w.c.promises.Publish(another("b", 0, w.now, 0), w.now.Add(time.Millisecond)) }
	if d := w.after(time.Second); d.Plan.Launch["gpu"] != 0 {
		t.Errorf("launches %d on the cards of another RayCluster", d.Plan.Launch["gpu"])
	}
	w.ray.reading = nil
	if d := w.after(time.Second); d.Plan.Launch["gpu"] != 4 {
		t.Errorf("launches %d when the nodes are read again, want 4", d.Plan.Launch["gpu"])
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
	given := map[string][]nodepool.Promise{}
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
			own.Workers = asks(own.Key.Name, i, 1, podsFrom(draw.IntN(50))).Pods.List()
		}
		got := registry.Before(own, afterStart.Add(keptFor))
		registry.line = nil
		if again := registry.Before(own, afterStart.Add(keptFor)); text(got) != text(again) {
			t.Fatalf("change %d: promises %q, want %q", i, text(got), text(again))
		}
		if slices.ContainsFunc(got, func(p nodepool.Promise) bool { return p.RayCluster == own.Key }) {
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
	for what, set := range map[string]*bool{"suspended": &other.Suspended, "deleted": &other.Deleting,
		"managed in another Kubernetes cluster": &other.ManagedElsewhere} {
		*set = true
		r.Note(other, start)
		if before := r.Before(own, afterStart.Add(keptFor)); len(before) != 0 {
			t.Errorf("a RayCluster that is %s has %v on its way", what, before)
		}
		*set = false
	}
}

func TestGroupsThatTheOperatorLeavesAloneHaveNoMissingPodsOnTheirWay(t *testing.T) {
	for what, prevent := range map[string]func(*nodepool.Cluster){
		"a suspended group":                func(c *nodepool.Cluster) { c.Groups[0].Suspended = true },
		"a broken group":                   func(c *nodepool.Cluster) { c.Groups[0].Broken = true },
		"a spec that the operator rejects": func(c *nodepool.Cluster) { c.Refused = true },
	} {
		other := &nodepool.Cluster{Key: keyOf("other"),
			Groups:  []nodepool.WorkerGroup{{Name: "gpu", Replicas: 4, Max: 9, NumOfHosts: 1}},
			Workers: []nodepool.Worker{{Pod: "a", Group: "gpu", CreatedAt: start}}}
		prevent(other)
		var r promises
		r.Note(other, start)
		if before := r.Before(ranked("own", 0), afterStart); len(before) != 1 || before[0].Pods != 1 {
			t.Errorf("with %s, promised are %v, want the pod that waits, and not the three that nobody makes", what, before)
		}
	}
}
