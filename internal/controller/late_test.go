package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// newLateWorld has an idle worker of group idle that was drained, and an API server that stores changes slowly.
func newLateWorld(t *testing.T) *world {
	w := newWorld(t, Config{}, gpuGroup("idle", 1, 0, 4), gpuGroup("other", 0, 0, 4))
	w.after(61 * time.Second)
	if len(w.ray.drained()) != 1 {
		t.Fatal("the worker was not drained")
	}
	w.kube.slow = true
	return w
}

func TestARemovalThatIsStoredTooSlowlyIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLateWorld(t)
		tries := 0
		w.kube.writing = func() { tries++ }
		for range 60 {
			w.after(time.Second)
		}
		w.lastNothing("Ray may have started again in the pod before the API server stores its name")
		if tries < 3 || tries > 8 {
			t.Errorf("%d tries within a minute, want some with growing pauses", tries)
		}
		w.kube.slow = false
		for range 40 {
			w.after(time.Second)
		}
		if got := w.lastChange(); len(got.WorkersToDelete) != 1 || got.Replicas != 0 {
			t.Errorf("target = %+v, want the worker removed once the API server is fast", got)
		}
	})
}

func TestARemovalThatIsGivenUpSaysWhyAndDelaysNoGrowth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLateWorld(t)
		w.want(2, raydemand.Bundle{raydemand.GPU: raydemand.Whole(1), "special": raydemand.One})
		w.group("other").Resources["special"] = raydemand.Whole(1)
		d := w.after(100 * time.Millisecond)
		if got := w.lastChange(); got.Group != "other" || got.Replicas != 2 {
			t.Errorf("target = %+v, want the launches alone", got)
		}
		if !strings.Contains(d.Paused, "the API server stores changes too slowly") {
			t.Errorf("paused: %q", d.Paused)
		}
		gaveUp := func(a decision.Action) bool {
			return a.Kind == decision.ActionPatch && a.Result == decision.ResultError && strings.Contains(a.Message, "within 1s")
		}
		if len(d.Actions) < 2 || !gaveUp(d.Actions[0]) {
			t.Errorf("actions %+v, want first the patch that was given up", d.Actions)
		}
	})
}

func TestAPatchThatTakesNothingAwayMayBeSlow(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 4))
	w.kube.slow = true
	w.want(1, raydemand.Bundle{raydemand.GPU: raydemand.Whole(1)})
	w.after(time.Second)
	if got := w.lastChange(); got.Replicas != 1 {
		t.Errorf("target = %+v, want the launch", got)
	}
}

// TestAPatchThatWasGivenUpAndStoredIsNoted: a container that starts again keeps its worker.
func TestAPatchThatWasGivenUpAndStoredIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLateWorld(t)
		w.after(100 * time.Millisecond)
		pod := w.pod(0)
		w.kube.slow = false
		w.kube.cluster.Groups[0].Replicas, w.kube.cluster.Groups[0].WorkersToDelete = 0, []string{pod}
		w.kube.cluster.Groups[0].HasScaleStrategy = true
		w.kube.cluster.Generation++
		again := w.node(pod) // Ray has started again in it, and the head has forgotten the earlier node
		again.ID, again.Status, again.Available = nodeID("again"), raydemand.Running, raydemand.Bundle{}
		w.after(time.Second)
		if got := w.lastChange(); got.TakenBack != 1 || got.Replicas != 1 {
			t.Errorf("target = %+v, want the name taken back", got)
		}
	})
}
