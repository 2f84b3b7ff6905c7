package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAnIdleWorkerIsDrainedThenNamedInOnePatchThenForgotten(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 1, 4))
	w.busy(w.pod(0))
	idle := w.pod(1)
	w.after(59 * time.Second)
	w.nothingWritten("idle for less than the timeout")

	w.after(2 * time.Second)
	if diff := cmp.Diff([]string{idle}, w.ray.drained()); diff != "" {
		t.Fatalf("drained (-want +got):\n%s", diff)
	}
	if d := w.ray.drains[0]; d.Reason != raydemand.DrainIdle || !d.Deadline.IsZero() || d.Message != "Heliostat: idle for 61s, longer than 60s" {
		t.Errorf("drain = %+v, want reason idle, reported once and without a deadline", d)
	}
	if len(w.kube.changes) != 0 {
		t.Errorf("patched %+v before the drain was confirmed", w.kube.changes)
	}

	w.after(100 * time.Millisecond)
	got := w.lastChange()
	want := nodepool.Target{Group: "gpu", From: 2, Replicas: 1, WorkersToDelete: []string{idle}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("target (-want +got):\n%s", diff)
	}
	w.after(100 * time.Millisecond)
	w.lastNothing("the name stays while the pod exists")

	w.operate()
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); got.WorkersToDelete == nil || len(got.WorkersToDelete) != 0 || got.Replicas != 1 {
		t.Errorf("target = %+v, want the list cleared and replicas kept", got)
	}
	if left := len(w.c.records[key].memory.drains); left != 0 {
		t.Errorf("%d drains are remembered of pods that are gone", left)
	}
	if diff := cmp.Diff([]string{addon.ReasonDraining, addon.ReasonScaledDown}, w.kube.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// lastNothing fails when the cluster was patched since the last call; drains before do not matter.
func (w *world) lastNothing(why string) {
	w.t.Helper()
	if len(w.kube.changes) > 0 {
		w.t.Errorf("%s: patched %+v", why, w.kube.changes)
	}
}

func TestARefusedDrainKeepsTheWorkerAndIsNotRepeatedSoon(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.ray.refuse[w.pod(0)] = true
	w.after(61 * time.Second)
	w.seconds(20)
	if len(w.ray.drains) != 1 || w.kube.emitted(addon.ReasonDrainRefused) != 1 {
		t.Errorf("%d drains and events %v, want one refusal: each one marks the node's actors", len(w.ray.drains), w.kube.events)
	}
	w.lastNothing("Ray refused")
	w.after(time.Minute)
	w.drains(2, "a second try after the pause")
}

func TestALostAnswerToADrainCountsAsAcceptedUntilTheNodeIsSeenAlive(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.ray.drainErr = errors.New("deadline exceeded")
	w.after(61 * time.Second)
	w.want(1, gpu(1))
	w.after(100 * time.Millisecond)
	w.patchedTo(2, "a second worker: the first may be leaving")
	w.want(0, nil)
	w.after(6 * time.Second)
	if w.c.records[key].memory.drains.Leaving(nodeID(w.pod(0))) {
		t.Error("the node lives on, so its drain did not happen")
	}
}

func TestACrashedWorkerIsReplacedByName(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 1))
	w.cycle()
	w.node(w.pod(0)).Status = raydemand.Dead
	w.want(1, gpu(1))
	w.after(100 * time.Millisecond)
	w.nothingWritten("KubeRay replaces ended containers itself")
	for range 4 {
		w.after(10 * time.Second)
		w.operate()
	}
	if w.exists("llm-gpu-1") {
		t.Error("the pod with the dead node still stands")
	}
	w.after(time.Second)
	w.operate()
	if len(w.kube.cluster.Workers) != 1 {
		t.Errorf("workers = %+v, want a new one for the demand", w.kube.cluster.Workers)
	}
}

func TestTheHostsOfAReplicaLeaveTogetherOrStay(t *testing.T) {
	for name, c := range map[string]struct {
		begin  func(*world)
		asked  int // the hosts that are asked to leave in the first round
		leaves bool
	}{
		"both agree":      {func(*world) {}, 2, true},
		"the first works": {func(w *world) { w.busy(w.pod(0)) }, 0, false},
		"the second has work since the last look": {func(w *world) {
			w.kube.onFresh = func() { w.busy(w.pod(1)) }
		}, 0, false},
		"the first refuses, so the second is not asked": {func(w *world) { w.ray.refuse[w.pod(0)] = true }, 1, false},
		"the second refuses":                            {func(w *world) { w.ray.refuse[w.pod(1)] = true }, 2, false},
		"the second refuses once": {func(w *world) {
			w.ray.refuse[w.pod(1)] = true
			w.ray.draining = func() {
				if len(w.ray.drains) > 2 {
					w.ray.refuse = nil
				}
			}
		}, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			slice := gpuGroup("slice", 1, 0, 4)
			slice.NumOfHosts = 2
			w := newWorld(t, Config{}, slice)
			c.begin(w)
			w.after(61 * time.Second)
			if got := len(w.ray.drains); got != c.asked {
				t.Errorf("drained %v at first, want %d hosts", w.ray.drained(), c.asked)
			}
			w.seconds(50)
			if !c.leaves {
				w.lastNothing("one of its hosts stays")
			} else if got := w.lastChange(); got.Replicas != 0 || len(got.WorkersToDelete) != 2 {
				t.Errorf("target = %+v, want the replica gone whole", got)
			}
		})
	}
}

func TestOneRoundOfDrainsSplitsNoReplica(t *testing.T) {
	slice := gpuGroup("slice", 4, 0, 4)
	slice.NumOfHosts = 6
	w := newWorld(t, Config{}, slice)
	w.after(61 * time.Second)
	asked := map[string]int{}
	for _, p := range w.kube.cluster.Workers {
		if slices.Contains(w.ray.drained(), p.Pod) {
			asked[p.Replica]++
		}
	}
	if diff := cmp.Diff(map[string]int{"slice-r0": 6, "slice-r1": 6, "slice-r2": 6}, asked); diff != "" {
		t.Errorf("hosts asked to leave in one round (-want +got):\n%s", diff)
	}
}

func TestAPodWithoutAReplicaInAMultiHostGroupIsLeftAlone(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 5))
	w.group("gpu").NumOfHosts, w.group("gpu").Replicas = 2, 0 // the pods are from before and have no replica's name
	w.after(61 * time.Second)
	w.seconds(50)
	w.nothingWritten("the operator would ignore their names")
	if w.kube.freshReads > 0 {
		t.Errorf("%d fresh lists, want none: there is nothing to confirm", w.kube.freshReads)
	}
}

func TestAReplicaOfWhichAHostIsEndingCostsNoFreshListPerCycle(t *testing.T) {
	slice := gpuGroup("slice", 1, 0, 4)
	slice.NumOfHosts = 2
	w := newWorld(t, Config{}, slice)
	w.after(61 * time.Second) // both are drained
	w.kube.cluster.Workers[1].Terminating = true
	w.kube.freshReads = 0
	w.cycles(50, 100*time.Millisecond)
	if w.kube.freshReads > 0 {
		t.Errorf("%d fresh lists, want none while the other host is there", w.kube.freshReads)
	}
	w.kube.cluster.Workers = w.kube.cluster.Workers[:1]
	w.after(time.Second)
	if got := w.lastChange(); got.Replicas != 0 || !slices.Equal(got.WorkersToDelete, []string{w.pod(0)}) {
		t.Errorf("target = %+v, want the host that is left gone by name", got)
	}
}

func TestARefusedWorkerServesDemandAgainAtOnce(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.ray.refuse[w.pod(0)] = true
	w.after(61 * time.Second)
	w.want(1, gpu(1))
	w.after(100 * time.Millisecond)
	w.lastNothing("the worker that refused can serve it")
}

func TestAnAcceptedDrainThatEndsNothingIsForgottenInTime(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.ray.immortal = true
	w.after(61 * time.Second)
	w.after(30 * time.Second)
	if !w.c.records[key].memory.drains.Leaving(nodeID(w.pod(0))) {
		t.Error("the drain was accepted, so the node leaves")
	}
	w.after(31 * time.Second)
	if w.c.records[key].memory.drains.Leaving(nodeID(w.pod(0))) {
		t.Error("a minute later the node still lives: it does not leave")
	}
	w.lastNothing("a living worker is never named")
}

func TestAWorkerThatRefusedAndThenWorkedIsAskedAgainAfterTheIdleTimeoutAlone(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.ray.refuse[w.pod(0)] = true
	w.kube.cluster.IdleTimeout = 5 * time.Second
	w.after(6 * time.Second)
	w.ray.refuse[w.pod(0)] = false
	w.busy(w.pod(0))
	w.after(time.Second)
	n := w.node(w.pod(0))
	n.Status, n.Idle, n.Available = raydemand.Idle, time.Second, n.Total.Clone()
	w.after(time.Second)
	w.after(5 * time.Second)
	w.drains(2, "the second one idle timeout after the work")
}

// A worker that had work before a reading between two cycles showed it must not be drained as if the work were old.
func TestAReadingBetweenCyclesShowsSinceWhenANodeWorks(t *testing.T) {
	m, v := newMemory(), viewOf(1)
	v.Cluster.Workers[0].Going = departure.OfTaint("karpenter.sh/disrupted", "")
	joined(&v)
	m.Remember(&v, settings())
	v = later(v, 2*time.Second)
	v.State.Nodes[1].Status, v.State.Nodes[1].Activity = raydemand.Running, []string{raydemand.ActiveWorkers}
	m.Glance(v.Now, v.State.Nodes, false, "")
	m.Glance(v.Now.Add(time.Second), nil, true, "")
	for used, want := range map[time.Duration]int{time.Second: 0, observe.PlacedShown - 1: 0, observe.PlacedShown: 1} {
		if got := m.Departing(later(v, used), time.Minute); len(got) != want {
			t.Errorf("%v after it was shown to work, %d drains, want %d", used, len(got), want)
		}
	}
}

// otherID makes a pod's node carry an instance id that is not the pod's name.
func (w *world) otherID(pod, id, ip string) {
	n := w.node(pod)
	n.Instance, n.IP = id, ip
}

func TestABusyNodeIsFoundByAddressWhenItsInstanceIDIsNotThePods(t *testing.T) {
	for name, id := range map[string]string{"no id": "", "another id": "i-0123"} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 5))
		w.kube.cluster.Workers[0].IP = "10.1.1.1"
		w.busy(w.pod(0))
		w.otherID(w.pod(0), id, "10.1.1.1")
		d := w.cycle()
		if state := d.Snapshot.Nodes[0].State; state != "RUNNING" {
			t.Errorf("%s: the pod is %s, want RUNNING", name, state)
		}
		d = w.seconds(65)
		w.nothingWritten(name)
		if hasFinding(d, observe.FindingOrphanNode) {
			t.Errorf("%s: findings = %+v, want none: the node was found", name, d.Findings)
		}
	}
}

func TestNoPodWithoutANodeGoesWhileALivingNodeIsFoundInNoPod(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 5))
	w.busy(w.pod(0))
	w.otherID(w.pod(0), "i-0123", "192.168.7.7")
	d := w.seconds(65)
	w.nothingWritten("the busy node may run in this very pod")
	if !hasFinding(d, observe.FindingOrphanNode) {
		t.Errorf("findings = %+v, want the node without a pod", d.Findings)
	}
	w.ray.nodes = w.ray.nodes[:1]
	w.after(time.Second)
	w.patchedTo(0, "the pod gone once no such node lives")
}

func hasFinding(d *addon.Decision, code string) bool {
	return slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == code })
}

// A policy refuses the growth of one group. All targets are one patch, but the worker of another group that has been
// drained costs money and is of no use.
func TestARefusedGrowthKeepsNoDrainedWorker(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 8), gpuGroup("other", 1, 0, 8))
	w.works(w.pod(0), w.pod(1))
	w.kube.refuses = func(target nodepool.Target) bool { return target.Group == "gpu" && target.Replicas > 2 }
	for range 200 {
		if w.after(time.Second); len(w.ray.drains) > 0 && w.ray.demand.Requests == nil {
			w.group("other").Max = 1
			w.want(1, gpu(1))
		}
	}
	if got := w.group("other"); got.Replicas != 0 || len(got.WorkersToDelete) != 1 {
		t.Errorf("replicas %d and names %v, want the drained worker to leave", got.Replicas, got.WorkersToDelete)
	}
	if d := w.after(30 * time.Second); !strings.Contains(d.Err, "refused") {
		t.Errorf("error %q, want the refusal of the growth", d.Err)
	}
}
