package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func disrupted() *departure.Notice { return departure.OfTaint("karpenter.sh/disrupted", "") }

// goes puts a pod on a machine that goes.
func (w *world) goes(pod string, notice *departure.Notice) {
	for i := range w.kube.cluster.Workers {
		if p := &w.kube.cluster.Workers[i]; p.Pod == pod {
			p.Node, p.Going, p.Grace = "ip-1", notice, 30*time.Second
		}
	}
}

// evicted makes somebody else delete a pod.
func (w *world) evicted(pod string) {
	w.goes(pod, departure.Of(departure.PodDisrupted, "the pod is being evicted (EvictionByEvictionAPI)").Until(w.now.Add(30*time.Second)))
	for i := range w.kube.cluster.Workers {
		if p := &w.kube.cluster.Workers[i]; p.Pod == pod {
			p.Terminating = true
		}
	}
}

func TestABusyWorkerWhoseMachineGoesIsDrainedReplacedAndNamedWhenEmpty(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
	w.works(w.pod(0), w.pod(1))
	going := w.pod(0)
	w.goes(going, disrupted())
	d := w.after(100 * time.Millisecond)

	if diff := cmp.Diff([]string{going}, w.ray.drained()); diff != "" {
		t.Fatalf("drained (-want +got):\n%s", diff)
	}
	drain := w.ray.drains[0]
	if drain.Reason != raydemand.DrainPreemption || !drain.Deadline.Equal(w.now.Add(30*time.Second)) ||
		drain.Message != "Heliostat: node ip-1 goes: taint karpenter.sh/disrupted" {
		t.Errorf("drain = %+v, want a preemption within the grace period of the pod", drain)
	}
	w.target(nodepool.Target{Group: "gpu", From: 2, Replicas: 3})
	i := slices.IndexFunc(d.Snapshot.Nodes, func(n planner.Node) bool { return n.Pod == going })
	if n := d.Snapshot.Nodes[i]; n.State != planner.Leaving || n.Going == nil || n.Going.Sign != departure.KarpenterDisrupted {
		t.Errorf("node = %+v, want it leaving with its sign", n)
	}
	w.emitted(addon.ReasonWorkerGoing, 1, "it begins once")

	w.operate() // the replacement, which starts slowly
	w.kube.cluster.IdleTimeout = 5 * time.Second
	w.seconds(20)
	w.lastNothing("the replacement is on its way, and the worker has work")
	w.joinAll()
	w.kube.cluster.IdleTimeout = time.Minute
	w.seconds(20)
	w.lastNothing("the worker has work")
	if got := w.ray.drained(); len(got) != 1 || w.kube.emitted(addon.ReasonWorkerGoing) != 1 {
		t.Errorf("drained %v with %d Events, want one of each", got, w.kube.emitted(addon.ReasonWorkerGoing))
	}

	w.node(going).Status = raydemand.Dead // its work has ended
	w.after(100 * time.Millisecond)
	w.target(nodepool.Target{Group: "gpu", From: 3, Replicas: 2, WorkersToDelete: []string{going}})
}

// TestWhatASignMustNotDo has two workers with work.
func TestWhatASignMustNotDo(t *testing.T) {
	warning := func(sign departure.Sign) func(*world) {
		return func(w *world) { w.goes(w.pod(0), departure.Of(sign, "a warning")) }
	}
	until := func(w *world) {
		w.goes(w.pod(0), departure.Of(departure.NodeClaimDeleting, "NodeClaim x is being deleted").Until(w.now.Add(time.Minute)))
	}
	for name, c := range map[string]struct {
		begin          func(*world)
		drains, events int
	}{
		"a cordon drains nothing":                 {warning(departure.Cordoned), 0, 0},
		"a candidate of an autoscaler neither":    {warning(departure.AutoscalerCandidate), 0, 0},
		"nor does a recommendation to rebalance":  {warning(departure.AWSRebalance), 0, 0},
		"in shadow, it is only reported":          {func(w *world) { w.kube.cluster.Mode = nodepool.Shadow; w.goes(w.pod(0), disrupted()) }, 0, 1},
		"frozen, it is only reported":             {func(w *world) { w.kube.cluster.Freeze = true; w.goes(w.pod(0), disrupted()) }, 0, 1},
		"no worker with work is named, even late": {until, 1, 1},
		"a pause of reductions stops no drain": {func(w *world) {
			w.kube.cluster.OwnedUnknown = "ResourceRequests cannot be read"
			until(w)
		}, 1, 1},
		// The operator replaces the pod itself once it is gone.
		"an evicted pod that cannot be named is not replaced twice": {func(w *world) {
			w.kube.cluster.OwnedUnknown = "ResourceRequests cannot be read"
			w.evicted(w.pod(0))
		}, 1, 1},
		"surplus that the operator ends is not named": {func(w *world) {
			w.group("gpu").Replicas = 1 // somebody lowered it
			w.idles(w.pod(0))
			w.evicted(w.pod(0))
		}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 2))
			w.works(w.pod(0), w.pod(1))
			c.begin(w)
			w.seconds(120)
			w.lastNothing(name)
			if len(w.ray.drains) != c.drains || w.kube.emitted(addon.ReasonWorkerGoing) != c.events {
				t.Errorf("drained %v, Events %v; want %d and %d", w.ray.drained(), w.kube.events, c.drains, c.events)
			}
			if at := w.kube.cluster.Workers[0].Going.Deadline; c.drains > 0 && !w.ray.drains[0].Deadline.Equal(at) {
				t.Errorf("drained until %v, want %v as the sign says", w.ray.drains[0].Deadline, at)
			}
		})
	}
}

func TestASignAboveALoweredMaximumDoesNotShortenItsDeadline(t *testing.T) {
	w := newWorld(t, Config{DrainDeadline: 10 * time.Minute}, gpuGroup("gpu", 2, 0, 4))
	w.busy(w.pod(0))
	w.busy(w.pod(1))
	w.group("gpu").Max = 1
	w.goes(w.pod(0), departure.Of(departure.NodeClaimDeleting, "NodeClaim x is being deleted").Until(w.now.Add(5*time.Second)))
	w.seconds(100)
	for _, change := range w.kube.changes {
		for _, target := range change.Targets {
			if len(target.WorkersToDelete) > 0 {
				t.Fatalf("named %v before its own deadline", target.WorkersToDelete)
			}
		}
	}
}

func TestAnIdleWorkerWhoseMachineGoesLeavesWithoutAReplacement(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	going := w.pod(0)
	w.seconds(4)
	w.goes(going, disrupted())
	w.after(100 * time.Millisecond)
	w.after(100 * time.Millisecond)
	w.target(nodepool.Target{Group: "gpu", From: 1, Replicas: 0, WorkersToDelete: []string{going}})
}

func TestASignThatIsTakenBackLeavesADrainedWorkerWithItsWork(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.works(w.pod(0))
	going := w.pod(0)
	w.goes(going, disrupted())
	w.after(100 * time.Millisecond)
	w.kube.changes = nil
	w.goes(going, nil)
	w.operate()
	w.joinAll()
	w.seconds(20)
	w.lastNothing("Ray cannot take the drain back, and the worker has work")
	w.drains(1, "the one drain")
	w.node(going).Status = raydemand.Dead
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); !slices.Equal(got.WorkersToDelete, []string{going}) || got.Replicas != 1 {
		t.Errorf("target = %+v, want the worker gone by name when it is empty", got)
	}
}

func TestASignThatIsTakenBackBeforeItsDrainDrainsNothing(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
	w.works(w.pod(0), w.pod(1))
	for i := range 2 {
		w.goes(w.pod(i), disrupted())
	}
	first, second := w.pod(0), w.pod(1)
	w.ray.draining = func() { w.goes(second, nil) }
	w.after(100 * time.Millisecond)
	if diff := cmp.Diff([]string{first}, w.ray.drained()); diff != "" {
		t.Errorf("drained (-want +got):\n%s", diff)
	}
}

// Facts of Karpenter, part F: without its name, lower replicas end a healthy worker.
func TestAnEvictedWorkerIsNamedWithOrWithoutAReplacement(t *testing.T) {
	type want struct {
		replicas int
		names    bool
	}
	for name, c := range map[string]struct {
		inTree, needed bool
		want           *want
	}{
		"needed, in-tree":             {true, true, &want{2, true}},
		"needed, not in-tree":         {false, true, &want{2, true}},
		"not needed, in-tree":         {true, false, &want{1, true}},
		"not needed, but not in-tree": {false, false, nil}, // the operator replaces it; a lower number could end the other
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
			w.kube.cluster.InTreeAutoscaling = c.inTree
			w.busy(w.pod(1))
			if c.needed {
				w.busy(w.pod(0))
			}
			evicted := w.pod(0)
			w.evicted(evicted)
			w.after(100 * time.Millisecond)
			if c.want == nil {
				w.lastNothing("the other worker is healthy")
				return
			}
			got := w.lastChange()
			if got.Replicas != c.want.replicas || slices.Contains(got.WorkersToDelete, evicted) != c.want.names || len(got.WorkersToDelete) != 1 {
				t.Errorf("target = %+v, want %d replicas and the name of the evicted pod alone", got, c.want.replicas)
			}
			w.operate()
			w.seconds(10)
			if pods := len(w.kube.cluster.Workers); pods != c.want.replicas {
				t.Errorf("%d pods, want %d: nothing is replaced twice", pods, c.want.replicas)
			}
		})
	}
}

// A patch may take seconds, for example behind a slow webhook. What Ray said before it is then too old for a drain.
func TestADepartingWorkerThatGotWorkWhileAPatchWasWrittenIsNotDrainedYet(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
	w.seconds(4)
	idle, busy := w.pod(0), w.pod(1)
	w.works(busy)
	w.goes(idle, disrupted())
	w.goes(busy, disrupted())
	w.want(2, gpu(1))
	w.kube.writing = func() {
		w.now = w.now.Add(5 * time.Second)
		w.node(idle).Status = raydemand.Running // nothing is in use yet: an actor is being placed
	}
	w.cycle()
	if len(w.kube.changes) != 1 {
		t.Fatalf("patches %v, want one for the replacements", w.kube.changes)
	}
	if got := w.ray.drained(); len(got) != 1 || got[0] != busy {
		t.Errorf("drained %v, want only %s, which has work as before", got, busy)
	}
	w.kube.writing = nil
	w.works(idle)
	if got := w.ray.drained(); len(got) != 2 {
		t.Errorf("drained %v, want both once the work of %s is known", got, idle)
	}
}

// A node without work ends at once when it drains. In the moment in which the GCS places work there, it still counts as
// idle, or as running without any use, and an actor without restarts would be lost. On Ray 2.52, an actor was shown 1.1 s
// after it had been sent to a node.
func TestAWorkerIsDrainedForItsMachineOnceItsWorkIsKnown(t *testing.T) {
	// idle, with work, running without any use, and with something reserved or an actor that is being placed
	const idle, works, running, reserved = 'i', 'w', 'r', 'p'
	for name, c := range map[string]struct {
		before rune   // what it does when it gets the sign; 0 if it joins on a machine that goes
		does   string // in each second from then on; the last continues
		after  time.Duration
	}{
		"idle for long":                   {idle, "i", 0},
		"idle just now":                   {works, "i", observe.PlacedShown},
		"it has worked for long":          {works, "w", 0},
		"it has work again":               {works, "iw", observe.PlacedShown + time.Second},
		"its work comes and goes":         {works, strings.Repeat("iw", 40), unsteady},
		"it joins, and stays idle":        {0, "i", observe.PlacedShown},
		"it joins, and an actor runs":     {0, "w", observe.PlacedShown},
		"it joins, and no report comes":   {0, "r", raydemand.ProcessStart},
		"it joins, and an actor may come": {0, "p", raydemand.ProcessStart},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
			pod := w.pod(0)
			last := rune(idle)
			become := func(state rune) {
				if state == last {
					return
				}
				last = state
				w.idles(pod)
				switch n := w.node(pod); state {
				case works:
					w.busy(pod)
				case running:
					n.Status = raydemand.Running
				case reserved:
					n.Status, n.Activity = raydemand.Running, []string{"Resource: GPU currently in use."}
				}
			}
			if c.before == 0 {
				w.ray.nodes = w.ray.nodes[:1]
				w.after(time.Second)
				w.joinAll()
			} else {
				become(c.before)
				w.seconds(5)
			}
			w.goes(pod, disrupted())
			begun := w.now
			for i := 0; len(w.ray.drains) == 0 && i < 70; i++ {
				become(rune(c.does[min(i, len(c.does)-1)]))
				w.after(100 * time.Millisecond)
				if len(w.ray.drains) == 0 {
					w.after(900 * time.Millisecond)
				}
			}
			if took := w.now.Sub(begun); len(w.ray.drains) == 0 || took < c.after || took > c.after+1100*time.Millisecond {
				t.Errorf("drained %v after %v, want it after %v", w.ray.drained(), took, c.after)
			}
		})
	}
}
