package controller

import (
	"slices"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestWhatWeTookAwayOurselvesIsNoSuddenDropHoweverLateRayNoticesIt(t *testing.T) {
	w := busyPair(t, Config{DrainDeadline: 25 * time.Second})
	w.limit("pair", 0)
	w.goesAfter(25*time.Second, 2, "the deadline runs")
	w.kube.cluster.Workers = nil // the operator has deleted both pods, and Ray has not noticed
	w.after(time.Second)
	if names := w.group("pair").WorkersToDelete; len(names) > 0 {
		t.Fatalf("workersToDelete = %v, want the names of pods that are gone cleared", names)
	}
	w.after(time.Second)
	w.ray.nodes = w.ray.nodes[:1]
	if d := w.after(time.Second); d.Paused != "" || w.kube.emitted(addon.ReasonReductionsPaused) > 0 {
		t.Errorf("paused: %q, events %v", d.Paused, w.kube.events)
	}
}

func TestNodesThatVanishUnderPodsThatStayAreASuddenDropAlthoughTheyWereNamedOnce(t *testing.T) {
	w := busyPair(t, Config{})
	group := w.group("pair")
	group.WorkersToDelete = []string{w.pod(0), w.pod(1)} // by somebody, who takes it back
	w.after(time.Second)
	w.group("pair").WorkersToDelete = nil
	w.after(time.Second)
	w.ray.nodes = slices.DeleteFunc(w.ray.nodes, func(n raydemand.Node) bool { return !n.Head })
	if d := w.after(time.Second); d.Paused == "" {
		t.Error("nothing pauses although two of three Ray nodes vanished under pods that nobody takes away")
	}
}
