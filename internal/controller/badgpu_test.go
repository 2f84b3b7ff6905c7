package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// breaks gives workers a bad GPU, each on a node of its own.
func (w *world) breaks(pods ...string) {
	for _, pod := range pods {
		notice := departure.Of(departure.BadGPU, "XID 79, on GPU-3 of node "+pod)
		notice.Since = w.now
		w.goes(pod, notice)
	}
	for i := range w.kube.cluster.Workers {
		w.kube.cluster.Workers[i].Node = w.kube.cluster.Workers[i].Pod
	}
}

// shown returns what the last plan shows of a worker.
func shown(d *addon.Decision, pod string) string {
	for i := range d.Snapshot.Nodes {
		if n := &d.Snapshot.Nodes[i]; n.Pod == pod && n.Going != nil {
			return fmt.Sprintf("certain %t: %s", n.Going.Certain, n.Going.Why())
		}
	}
	return ""
}

func TestAWorkerWithABadGPUIsReplacedDrainedAndNamedWhenEmpty(t *testing.T) {
	w := newWorld(t, Config{DrainBadGPUs: true, DrainDeadline: 10 * time.Minute}, gpuGroup("gpu", 1, 0, 4))
	w.kube.cluster.Owner = nodepool.Owner{Kind: "RayJob", Name: "train"}
	bad := w.pod(0)
	w.works(bad)
	w.breaks(bad)
	d := w.after(100 * time.Millisecond)
	if got := w.ray.drained(); len(got) != 1 || got[0] != bad || w.ray.drains[0].Reason != raydemand.DrainPreemption ||
		!w.ray.drains[0].Deadline.Equal(w.now.Add(10*time.Minute)) ||
		w.ray.drains[0].Message != "Heliostat: bad GPU: XID 79, on GPU-3 of node "+bad {
		t.Fatalf("drains %+v", w.ray.drains)
	}
	if got := w.lastChange(); got.Replicas != 2 || len(got.WorkersToDelete) > 0 {
		t.Errorf("target %+v, want the replacement first", got)
	}
	if w.kube.emitted(addon.ReasonBadGPU) != 1 || w.kube.emitted("owner "+addon.ReasonBadGPU) != 1 {
		t.Errorf("Events %v, want one on the RayCluster and one on the RayJob", w.kube.events)
	}
	if got := shown(d, bad); got != "certain true: XID 79, on GPU-3 of node "+bad {
		t.Errorf("status: %s", got)
	}
	w.operate()
	w.joinAll()
	w.node(bad).Status = raydemand.Draining
	w.kube.changes = nil
	w.seconds(595)
	if len(w.kube.changes) > 0 {
		t.Fatalf("%+v, although it has work", w.kube.changes)
	}
	w.seconds(2 * 600)
	if got := w.lastChange(); got.Replicas != 1 || slices.Contains(got.WorkersToDelete, bad) {
		t.Fatalf("%+v, want that after the deadline the replacement that nothing needs goes, and not %s", got, bad)
	}
	w.operate()
	w.node(bad).Status = raydemand.Dead
	w.seconds(1)
	if got := w.lastChange(); got.Replicas != 0 || len(got.WorkersToDelete) != 1 || got.WorkersToDelete[0] != bad {
		t.Errorf("target %+v, want %s to go by name", got, bad)
	}
}

// What drains for another reason, or with the flag off, is no new demand because its GPU may be bad.
func TestAWorkerThatDrainsForAnotherReasonIsNotReplacedForABadGPU(t *testing.T) {
	for _, on := range []bool{false, true} {
		w := newWorld(t, Config{DrainBadGPUs: on}, gpuGroup("gpu", 1, 0, 4))
		w.works(w.pod(0))
		w.node(w.pod(0)).Status = raydemand.Draining
		w.breaks(w.pod(0))
		if on {
			w.kube.cluster.Workers[0].Going.Stay("nothing shows which GPUs of the node the worker has")
		}
		d := w.seconds(5)
		w.nothingWritten("it drains for another reason")
		if got := shown(d, w.pod(0)); !strings.HasPrefix(got, "certain false") {
			t.Errorf("flag %t: %s", on, got)
		}
	}
}

func TestAWorkerThatHasNotJoinedTakesNoSlotFromOthers(t *testing.T) {
	w := newWorld(t, Config{DrainBadGPUs: true}, gpuGroup("gpu", 1, 0, 4))
	w.works(w.pod(0))
	w.group("gpu").Replicas++
	w.operate()
	bad, starting := w.pod(0), w.pod(1)
	w.breaks(starting)
	w.seconds(1)
	w.breaks(bad)
	d := w.seconds(5)
	if got := shown(d, starting); !strings.Contains(got, "it has not joined") {
		t.Errorf("a worker that has not joined: %s", got)
	}
	if got := w.ray.drained(); !slices.Equal(got, []string{bad}) {
		t.Errorf("drained %v, want %s", got, bad)
	}
}

func TestADrainThatDoesNotEndTakesNoSlotForEver(t *testing.T) {
	w := newWorld(t, Config{DrainBadGPUs: true}, gpuGroup("gpu", 2, 0, 2))
	w.works(w.pod(0), w.pod(1))
	w.node(w.pod(0)).Status = raydemand.Draining
	w.seconds(1)
	w.breaks(w.pod(1))
	w.seconds(1795)
	if len(w.ray.drains) > 0 {
		t.Errorf("drained %v although another worker drains", w.ray.drained())
	}
	w.seconds(10)
	if got := w.ray.drained(); !slices.Equal(got, []string{w.pod(1)}) {
		t.Errorf("drained %v, want the worker, two deadlines after that of the drain which does not end", got)
	}
}

func TestNothingIsDrainedForABadGPUUnaskedOrInDoubt(t *testing.T) {
	cluster := func(change func(*nodepool.Cluster)) func(*world) { return func(w *world) { change(&w.kube.cluster) } }
	for name, c := range map[string]struct {
		on     bool
		change func(*world)
		says   string
	}{
		"the flag is off": {change: func(*world) {}, says: "--drain-bad-gpus is off"},
		"in the first minute, and the flag is off": {says: "--drain-bad-gpus is off",
			change: func(w *world) { w.kube.cluster.Workers[0].Going.Stay(departure.TooNew) }},
		"reductions are paused": {on: true, says: "certain true", change: cluster(func(c *nodepool.Cluster) { c.OwnedUnknown = "forbidden" })},
		"in shadow":             {on: true, says: "the RayCluster is not managed", change: cluster(func(c *nodepool.Cluster) { c.Mode = nodepool.Shadow })},
		"frozen":                {on: true, says: "the RayCluster is not managed", change: cluster(func(c *nodepool.Cluster) { c.Freeze = true })},
	} {
		w := newWorld(t, Config{DrainBadGPUs: c.on}, gpuGroup("gpu", 1, 0, 1))
		w.works(w.pod(0))
		w.breaks(w.pod(0))
		c.change(w)
		d := w.seconds(65)
		w.nothingWritten(name)
		if got := shown(d, w.pod(0)); !strings.Contains(got, c.says) || w.kube.emitted(addon.ReasonBadGPU) != 1 {
			t.Errorf("%s: %s, Events %v; want %q and one Event", name, got, w.kube.events, c.says)
		}
	}
}

func TestFewNodesOfAGroupDrainAtATimeForBadGPUs(t *testing.T) {
	for workers, most := range map[int]int{2: 1, 39: 1, 40: 2} {
		w := newWorld(t, Config{DrainBadGPUs: true}, gpuGroup("gpu", workers, 0, 100))
		var pods []string
		for i := range workers {
			pods = append(pods, w.pod(i))
		}
		w.works(pods...)
		w.breaks(pods[workers-1])
		w.after(100 * time.Millisecond)
		w.breaks(pods...)
		w.operate()
		d := w.seconds(10)
		if got := w.ray.drained(); len(got) != most || got[0] != pods[workers-1] {
			t.Fatalf("of %d workers, %v are drained, want %d, that with the oldest sign first", workers, got, most)
		}
		if waits := shown(d, pods[workers-2]); most == 1 && !strings.Contains(waits, "at most one node of group gpu drains at a time") {
			t.Errorf("one that waits shows %q", waits)
		}
		// A drained worker whose sign is gone still counts.
		w.node(pods[workers-1]).Status = raydemand.Draining
		w.goes(pods[workers-1], nil)
		w.seconds(10)
		if got := w.ray.drained(); len(got) != most {
			t.Errorf("of %d workers, %v are drained when a sign is gone, want %d", workers, got, most)
		}
		w.node(pods[workers-1]).Status = raydemand.Dead
		w.seconds(1)
		w.operate()
		w.joinAll()
		w.breaks() // the replacements have nodes, too
		w.seconds(10)
		if got := w.ray.drained(); len(got) != most+1 {
			t.Errorf("of %d workers, %v were drained after the first is gone, want one more", workers, got)
		}
	}
}

// A process that restarts sees each sign anew. What it drained before keeps its replacement meanwhile.
func TestAfterARestartADrainedWorkerKeepsItsReplacement(t *testing.T) {
	w := newWorld(t, Config{DrainBadGPUs: true}, gpuGroup("gpu", 2, 0, 4))
	w.works(w.pod(0), w.pod(1))
	w.breaks(w.pod(0), w.pod(1))
	w.after(100 * time.Millisecond)
	drained := w.ray.drained()
	if len(drained) != 1 {
		t.Fatalf("drained %v", drained)
	}
	w.operate()
	w.joinAll()
	w.node(drained[0]).Status = raydemand.Draining
	for i := range w.kube.cluster.Workers {
		if notice := w.kube.cluster.Workers[i].Going; notice != nil {
			fresh := *notice
			fresh.Stay(departure.TooNew)
			w.kube.cluster.Workers[i].Going = &fresh
		}
	}
	w.restart(Config{DrainBadGPUs: true})
	w.kube.changes = nil
	d := w.seconds(90)
	if got := shown(d, drained[0]); !strings.HasPrefix(got, "certain true") || len(w.ray.drained()) != 1 {
		t.Errorf("%s; drained %v", got, w.ray.drained())
	}
	if len(w.kube.changes) > 0 {
		t.Errorf("%+v", w.kube.changes)
	}
}
