package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
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
	if diff := cmp.Diff(nodepool.Target{Group: "gpu", From: 2, Replicas: 3}, w.lastChange()); diff != "" {
		t.Errorf("target of the replacement (-want +got):\n%s", diff)
	}
	i := slices.IndexFunc(d.Snapshot.Nodes, func(n planner.Node) bool { return n.Pod == going })
	if n := d.Snapshot.Nodes[i]; n.State != planner.Leaving || n.Going == nil || n.Going.Sign != departure.KarpenterDisrupted {
		t.Errorf("node = %+v, want it leaving with its sign", n)
	}
	if got := w.kube.emitted(addon.ReasonWorkerGoing); got != 1 {
		t.Errorf("%d Events of the worker, want 1", got)
	}

	w.operate() // the replacement
	for range 20 {
		w.after(time.Second)
	}
	w.lastNothing("the replacement is on its way, and the worker has work")
	w.joinAll()
	for range 20 {
		w.after(time.Second)
	}
	w.lastNothing("the worker has work")
	if got := w.ray.drained(); len(got) != 1 || w.kube.emitted(addon.ReasonWorkerGoing) != 1 {
		t.Errorf("drained %v with %d Events, want one of each", got, w.kube.emitted(addon.ReasonWorkerGoing))
	}

	w.node(going).Status = raydemand.Dead // its work has ended
	w.after(100 * time.Millisecond)
	if diff := cmp.Diff(nodepool.Target{Group: "gpu", From: 3, Replicas: 2, WorkersToDelete: []string{going}}, w.lastChange()); diff != "" {
		t.Errorf("target when it is empty (-want +got):\n%s", diff)
	}
}

func TestAReplacementThatStartsSlowlyIsNotTakenBackWhileTheWorkMoves(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.kube.cluster.IdleTimeout = 5 * time.Second
	w.busy(w.pod(0))
	w.goes(w.pod(0), disrupted().Until(w.now.Add(time.Hour)))
	w.after(100 * time.Millisecond)
	w.operate() // the replacement, which waits for its machine
	patches := len(w.kube.changes)
	for range 30 {
		w.after(time.Second)
	}
	if later := w.kube.changes[patches:]; len(later) > 0 {
		t.Errorf("%v while the replacement starts, want nothing", later)
	}
}

func TestTheDeadlineOfTheSignIsThatOfTheDrain(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 1))
	w.works(w.pod(0))
	deadline := w.now.Add(time.Minute)
	w.goes(w.pod(0), departure.Of(departure.NodeClaimDeleting, "NodeClaim x is being deleted").Until(deadline))
	w.after(100 * time.Millisecond)
	if len(w.ray.drains) != 1 || !w.ray.drains[0].Deadline.Equal(deadline) {
		t.Fatalf("drains = %+v, want one until %v", w.ray.drains, deadline)
	}
	for range 120 {
		w.after(time.Second)
	}
	w.lastNothing("a worker with work is never named, even after the deadline of its machine")
}

func TestASignAboveALoweredMaximumDoesNotShortenItsDeadline(t *testing.T) {
	w := newWorld(t, Config{DrainDeadline: 10 * time.Minute}, gpuGroup("gpu", 2, 0, 4))
	w.busy(w.pod(0))
	w.busy(w.pod(1))
	w.group("gpu").Max = 1
	w.goes(w.pod(0), departure.Of(departure.NodeClaimDeleting, "NodeClaim x is being deleted").Until(w.now.Add(5*time.Second)))
	for range 100 {
		w.after(time.Second)
	}
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
	for range 4 {
		w.after(time.Second)
	}
	w.goes(going, disrupted())
	w.after(100 * time.Millisecond)
	w.after(100 * time.Millisecond)
	if diff := cmp.Diff(nodepool.Target{Group: "gpu", From: 1, Replicas: 0, WorkersToDelete: []string{going}}, w.lastChange()); diff != "" {
		t.Errorf("target (-want +got):\n%s", diff)
	}
}

func TestAWarningDrainsNothing(t *testing.T) {
	for _, sign := range []departure.Sign{departure.Cordoned, departure.AutoscalerCandidate, departure.AWSRebalance} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
		w.busy(w.pod(0))
		w.goes(w.pod(0), departure.Of(sign, "a warning"))
		w.goes(w.pod(1), departure.Of(sign, "a warning"))
		for range 50 {
			w.after(time.Second)
		}
		w.nothingWritten(string(sign) + " is a warning")
	}
}

func TestInShadowAndWhileFrozenASignIsOnlyReported(t *testing.T) {
	for name, prepare := range map[string]func(w *world){
		"shadow": func(w *world) { w.kube.cluster.Mode = nodepool.Shadow },
		"frozen": func(w *world) { w.kube.cluster.Freeze = true },
	} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
		prepare(w)
		w.busy(w.pod(0))
		w.goes(w.pod(0), disrupted())
		d := w.after(100 * time.Millisecond)
		w.nothingWritten(name)
		if w.kube.emitted(addon.ReasonWorkerGoing) != 1 || d.Plan.Launch["gpu"] != 1 {
			t.Errorf("%s: %d Events, launch %v; want one of each", name, w.kube.emitted(addon.ReasonWorkerGoing), d.Plan.Launch)
		}
	}
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
	for range 20 {
		w.after(time.Second)
	}
	w.lastNothing("Ray cannot take the drain back, and the worker has work")
	if len(w.ray.drains) != 1 {
		t.Errorf("drained %v, want the one drain", w.ray.drained())
	}
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

func TestAReductionThatIsPausedStopsNoDrainOfAMachineThatGoes(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 1))
	w.works(w.pod(0))
	w.kube.cluster.OwnedUnknown = "ResourceRequests cannot be read"
	w.goes(w.pod(0), disrupted())
	w.after(100 * time.Millisecond)
	if len(w.ray.drains) != 1 {
		t.Errorf("drained %v, want the worker: it takes nothing away", w.ray.drained())
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
			for range 10 {
				w.after(time.Second)
			}
			if pods := len(w.kube.cluster.Workers); pods != c.want.replicas {
				t.Errorf("%d pods, want %d: nothing is replaced twice", pods, c.want.replicas)
			}
		})
	}
}

func TestAnEvictedWorkerIsReplacedOnceWhenItCannotBeNamed(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
	w.busy(w.pod(0))
	w.busy(w.pod(1))
	w.kube.cluster.OwnedUnknown = "ResourceRequests cannot be read" // pauses reductions
	w.evicted(w.pod(0))
	for range 5 {
		w.after(time.Second)
	}
	w.lastNothing("the operator replaces the pod itself once it is gone")
}

func TestSurplusThatTheOperatorEndsIsNotNamed(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 3, 0, 4))
	w.busy(w.pod(2))
	w.group("gpu").Replicas = 1 // somebody lowered it
	w.evicted(w.pod(0))
	w.evicted(w.pod(1))
	w.after(100 * time.Millisecond)
	w.lastNothing("replicas no longer ask for them")
}

func TestAGroupWhoseMachineIsTakenBackRanksBelowItsEquals(t *testing.T) {
	reclaimed := departure.OfTaint("aws-node-termination-handler/spot-itn", "")
	for name, c := range map[string]struct {
		notice *departure.Notice
		want   map[string]int
	}{
		"taken back by the cloud":     {reclaimed, map[string]int{"b": 1}},
		"consolidated, so not a sign": {disrupted(), map[string]int{"a": 1}},
	} {
		w := newWorld(t, Config{}, gpuGroup("a", 1, 0, 4), gpuGroup("b", 0, 0, 4))
		w.busy(w.pod(0))
		w.goes(w.pod(0), c.notice)
		d := w.after(100 * time.Millisecond)
		if diff := cmp.Diff(c.want, d.Plan.Launch); diff != "" {
			t.Errorf("%s: launch (-want +got):\n%s", name, diff)
		}
		if d.Snapshot.Groups[0].Closed != "" {
			t.Errorf("%s: the group is closed: %s", name, d.Snapshot.Groups[0].Closed)
		}
	}
	w := newWorld(t, Config{}, gpuGroup("a", 1, 0, 4))
	w.busy(w.pod(0))
	w.goes(w.pod(0), reclaimed)
	if d := w.after(100 * time.Millisecond); d.Plan.Launch["a"] != 1 {
		t.Errorf("launch %v, want one: no other group can serve it", d.Plan.Launch)
	}
}
