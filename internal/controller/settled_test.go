package controller

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// joins makes the Ray node of a pod join anew, after its raylet has run for a while: Ray counts idle times from then.
func (w *world) joins(pod string, raylet time.Duration) {
	w.idles(pod)
	n := w.node(pod)
	n.ID, n.Idle = nodeID(pod+"-anew"), raylet
}

// Above a lowered maximum, the worker that is used least is one that has just joined, or whose work has just ended. A
// drain would end it with the actor that Ray is placing there.
func TestAWorkerAboveTheMaximumIsDrainedOnceItsWorkIsKnown(t *testing.T) {
	for name, begin := range map[string]func(*world){
		"it joins, and has not reported yet": func(w *world) {
			w.joins(w.pod(1), 0)
			w.node(w.pod(1)).Status = raydemand.Running
		},
		"its work ended, and an actor is being placed": func(w *world) {
			n := w.node(w.pod(1))
			n.Activity = []string{"Resource: GPU currently in use."}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 2))
			w.works(w.pod(0), w.pod(1))
			begin(w)
			w.node(w.pod(1)).Available = raydemand.Bundle{raydemand.CPU: raydemand.Whole(4)}
			w.group("gpu").Max = 1
			w.cycles(9, 100*time.Millisecond)
			w.drains(0, "what runs there is not known yet")
			w.busy(w.pod(1))
			w.seconds(5)
			w.drains(1, "its work is known")
		})
	}
}

func TestNoHostOfAReplicaIsDrainedBeforeTheWorkOfAllIsKnown(t *testing.T) {
	w := busyPair(t, Config{})
	w.joins(w.pod(1), 0)
	w.node(w.pod(1)).Status = raydemand.Running
	w.group("pair").Max = 0
	w.seconds(2)
	w.drains(0, "one host has just joined")
	w.busy(w.pod(1))
	w.seconds(5)
	w.drains(2, "the work of both is known")
}

// A new process cannot know when the nodes of its first reading joined, and Ray counts idle times from before that.
func TestAfterARestartANodeOfADepartingMachineIsWatchedFirst(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.restart(Config{})
	w.joins(w.pod(0), time.Minute)
	w.goes(w.pod(0), disrupted())
	w.cycles(9, 100*time.Millisecond)
	w.drains(0, "it may have joined right before the first reading")
	w.busy(w.pod(0))
	w.seconds(5)
	w.drains(1, "its work is known")
}

// The second reading shows an idle node as the first did, but with a new idle time: it has worked in between.
func TestANodeThatWorkedBetweenTwoReadingsIsNotDrained(t *testing.T) {
	t.Run("idle", func(t *testing.T) {
		w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
		w.after(59 * time.Second)
		w.kube.onFresh = func() { w.idles(w.pod(0)) }
		w.after(2 * time.Second)
		w.drains(0, "its idle time has begun anew")
	})
	t.Run("its machine goes", func(t *testing.T) {
		w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
		w.works(w.pod(1))
		w.goes(w.pod(0), disrupted())
		w.want(2, gpu(1))
		w.kube.writing = func() {
			w.now = w.now.Add(5 * time.Second)
			w.idles(w.pod(0))
		}
		w.cycle()
		w.drains(0, "Ray may just place the next work there")
	})
}

// Work that begins and ends between two readings leaves a worker idle in both.
func TestAWorkerThatWorkedBetweenReadingsIsNotGivenBackAsIdle(t *testing.T) {
	w := newBusyWorld(t, 2, 0, 8)
	w.idles(w.pod(0))
	w.seconds(30)
	w.idles(w.pod(0))
	if got, err := w.giveBack(giveback.Ask{GPUs: 1, Group: "gpu", DryRun: true}); err == nil {
		t.Errorf("agreed on %+v %v after its last work", got.Workers, w.node(w.pod(0)).Idle)
	}
	w.after(observe.PlacedShown)
	if _, err := w.giveBack(giveback.Ask{GPUs: 1, Group: "gpu", DryRun: true}); err != nil {
		t.Error(err)
	}
}

// With very many RayClusters, each is read seldom: nothing can have hidden in Ray's own idle time.
func TestAWorkerThatIsReadSeldomIsGivenBackAsIdle(t *testing.T) {
	w := newBusyWorld(t, 2, 0, 8)
	w.idles(w.pod(0))
	w.cycles(2, 15*time.Second)
	w.pass(15 * time.Second)
	if _, err := w.giveBack(giveback.Ask{GPUs: 1, Group: "gpu", DryRun: true}); err != nil {
		t.Error(err)
	}
}

// Each drain may take seconds, and Ray may place work on the next node meanwhile.
func TestADepartingWorkerThatGotWorkDuringTheDrainOfAnotherIsNotDrainedYet(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
	w.seconds(4)
	first, next := w.pod(0), w.pod(1)
	w.goes(first, disrupted())
	w.goes(next, disrupted())
	w.ray.draining = func() {
		w.now = w.now.Add(2 * time.Second)
		w.node(next).Status = raydemand.Running // nothing is in use yet: an actor is being placed
	}
	w.cycle()
	w.drains(1, next+" has got work since it was read")
	w.ray.draining = nil
	w.works(next)
	w.drains(2, "its work is known")
}
