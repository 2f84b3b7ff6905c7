package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestANamedPodThatComesBackToLifeIsTakenOffTheList(t *testing.T) {
	for name, restart := range map[string]bool{"by the process that named it": false, "after a restart of ours": true} {
		w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 5))
		w.busy(w.pod(1))
		w.after(61 * time.Second)
		w.after(100 * time.Millisecond)
		if got := w.lastChange(); got.Replicas != 1 {
			t.Fatalf("target = %+v, want the drained worker gone by name", got)
		}
		// An earlier group holds the operator up, and the container is started again.
		second := *w.node(w.pod(0))
		second.ID, second.Status, second.Available = nodeID("second life"), raydemand.Running, raydemand.Bundle{}
		w.ray.nodes = append(w.ray.nodes, second)
		if restart {
			w.restart(Config{})
		}
		d := w.after(100 * time.Millisecond)
		got := w.lastChange()
		if got.Replicas != 2 || got.WorkersToDelete == nil || len(got.WorkersToDelete) != 0 {
			t.Errorf("%s: target = %+v, want the name taken back and a replica more", name, got)
		}
		const stays = "replicas 1 → 2: named workers in which Ray has started again stay (1)"
		if len(d.Actions) == 0 || !strings.Contains(d.Actions[0].Message, stays) {
			t.Errorf("%s: actions %+v, want %q", name, d.Actions, stays)
		}
		if !hasFinding(d, "name-taken-back") {
			t.Errorf("%s: findings = %+v", name, d.Findings)
		}
		w.after(100 * time.Millisecond)
		w.lastNothing("it is taken back once")
	}
}

// TestAPodThatCameBackToLifeIsNotTakenAsDrainedAgain has a head that leaves out the second node of a pod, whose first one
// was drained.
func TestAPodThatCameBackToLifeIsNotTakenAsDrainedAgain(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 4, 0, 5))
	w.busy(w.pod(1))
	w.busy(w.pod(2))
	w.busy(w.pod(3))
	w.after(61 * time.Second)
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); got.Replicas != 3 {
		t.Fatalf("target = %+v, want the drained worker gone by name", got)
	}
	all := slices.Clone(w.ray.nodes)
	second := *w.node(w.pod(0))
	second.ID, second.Status, second.Available = nodeID("second life"), raydemand.Running, raydemand.Bundle{}
	w.ray.nodes = append(w.ray.nodes, second)
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); got.Replicas != 4 {
		t.Fatalf("target = %+v, want the name taken back", got)
	}
	w.after(time.Second)
	w.ray.nodes = all
	w.seconds(3)
	w.lastNothing("its node is left out, and was never drained")
}

// TestANamedPodThatComesBackToLifeTakesThePlaceOfALaunch has an operator that stands still: new demand has raised the
// replicas to the maximum again, and the pod for it does not exist yet.
func TestANamedPodThatComesBackToLifeTakesThePlaceOfALaunch(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 2))
	w.kube.cluster.InTreeAutoscaling = false
	w.busy(w.pod(1))
	w.after(61 * time.Second)
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); got.Replicas != 1 || len(got.WorkersToDelete) != 1 {
		t.Fatalf("target = %+v, want the drained worker gone by name", got)
	}
	w.want(1, gpu(1))
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); got.Replicas != 2 || got.WorkersToDelete != nil {
		t.Fatalf("target = %+v, want a launch beside the pod that is named", got)
	}
	second := *w.node(w.pod(0))
	second.ID, second.Status, second.Available = nodeID("second life"), raydemand.Running, raydemand.Bundle{}
	w.ray.nodes = append(w.ray.nodes, second)
	w.want(0, nil)
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); got.Replicas != 2 || got.WorkersToDelete == nil || len(got.WorkersToDelete) != 0 {
		t.Errorf("target = %+v, want the name taken back: it has work, and the launched pod does not exist", got)
	}
}

func TestANamedPodIsTakenOffTheListWhenItsContainerRunsAtLast(t *testing.T) {
	w := newUnneededPod(t)
	w.after(61 * time.Second)
	if got := w.lastChange(); got.Replicas != 0 || len(got.WorkersToDelete) != 1 {
		t.Fatalf("target = %+v, want the pod gone whose container does not run", got)
	}
	w.start(0) // its image is there, and an earlier group holds the operator up
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); got.Replicas != 1 || len(got.WorkersToDelete) != 0 {
		t.Fatalf("target = %+v, want the name taken back: Ray may give it work as soon as it joins", got)
	}
	w.joinAll()
	w.busy(w.pod(0))
	w.after(2 * time.Minute)
	w.lastNothing("it has work")
}

func TestADrainedPodWhoseContainerStartsAnewStillGoes(t *testing.T) {
	w := newWorld(t, Config{AllocationTimeout: 5 * time.Minute}, gpuGroup("gpu", 2, 0, 5))
	w.busy(w.pod(1))
	w.after(61 * time.Second)
	w.after(100 * time.Millisecond)
	if got := w.lastChange(); got.Replicas != 1 {
		t.Fatalf("target = %+v, want the drained worker gone by name", got)
	}
	w.start(0) // its kubelet restarts what has ended
	w.after(100 * time.Millisecond)
	w.lastNothing("its node is dead")
	w.ray.nodes = slices.DeleteFunc(w.ray.nodes, func(n raydemand.Node) bool { return n.Instance == w.pod(0) })
	w.after(100 * time.Millisecond)
	w.lastNothing("Ray let it go, and has forgotten it")
}

func TestALivingPodThatSomebodyElseNamedIsLeftToTheOperator(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 5))
	w.busy(w.pod(0))
	w.group("gpu").Replicas, w.group("gpu").WorkersToDelete = 1, []string{w.pod(0)}
	w.after(100 * time.Millisecond)
	w.nothingWritten("a person may take a busy worker away")
}
