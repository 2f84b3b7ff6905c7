package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/addon/consolidation"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// newHalfEmptyWorld has workers of 4 CPUs, each with one Serve replica of 2 CPUs.
func newHalfEmptyWorld(t *testing.T, workers int, opted nodepool.Consolidate) *world {
	t.Helper()
	price := 3.1
	w := newWorld(t, Config{}, nodepool.WorkerGroup{Name: "cpu", Replicas: workers, Max: 16, Price: &price,
		Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(4)}})
	w.kube.cluster.Consolidate = opted
	for i := range workers {
		w.place(w.pod(i), raydemand.Resident{Name: "SERVE_REPLICA::app#D#" + w.pod(i), Class: "ServeReplica:app:D",
			Namespace: "serve", Alive: true, Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(2)}})
	}
	return w
}

// place puts an actor on a worker.
func (w *world) place(pod string, actor raydemand.Resident) {
	n := w.node(pod)
	n.Status, n.Idle = raydemand.Running, 0
	n.Activity = []string{raydemand.ActiveWorkers, "Resource: CPU currently in use."}
	n.Available.Take(actor.Resources)
	actor.Node = n.ID
	w.ray.residents = append(w.ray.residents, actor)
}

func suggestions(d *addon.Decision) []raydemand.Finding {
	return slices.DeleteFunc(slices.Clone(d.Findings), func(f raydemand.Finding) bool {
		return f.Code != consolidation.FindingPossible
	})
}

func TestConsolidationIsSuggestedAndNotDoneUnasked(t *testing.T) {
	for name, c := range map[string]struct {
		opted nodepool.Consolidate
		mode  nodepool.Mode
		want  string
	}{
		"without the annotation": {want: "kubectl -n ml annotate raycluster llm --overwrite heliostat.dev/consolidate=serve"},
		"with none":              {opted: nodepool.ConsolidateNone, want: "heliostat.dev/consolidate=serve"},
		"in shadow":              {opted: nodepool.ConsolidateServe, mode: nodepool.Shadow, want: "shadow"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHalfEmptyWorld(t, 2, c.opted)
			w.kube.cluster.Mode = c.mode
			found := suggestions(w.minutes(30))
			w.nothingWritten(name)
			if len(found) != 2 || !strings.Contains(found[0].Fix, c.want) || !strings.Contains(found[0].Why, "fits on") {
				t.Errorf("suggestions %+v, want %q", found, c.want)
			}
		})
	}
}

// onlyFresh changes what the API server has, and not what the caches show; onlyCached does the opposite.
func (w *world) onlyFresh(change func(*nodepool.Cluster)) {
	fresh := clone(w.kube.cluster)
	change(&fresh)
	w.kube.fresh = &fresh
}

func (w *world) onlyCached(change func(*nodepool.Cluster)) {
	cached := clone(w.kube.cluster)
	change(&cached)
	w.kube.cached = &cached
}

func TestNothingIsDrainedIfTheLastLookContradicts(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"a task runs there":                 func(w *world) { w.node(w.pod(0)).Available.Take(raydemand.Bundle{raydemand.CPU: raydemand.One}) },
		"the other is full":                 func(w *world) { w.node(w.pod(1)).Available = raydemand.Bundle{} },
		"demand waits":                      func(w *world) { w.want(1, raydemand.Bundle{raydemand.CPU: raydemand.Whole(4)}) },
		"the opt-in is gone":                func(w *world) { w.kube.cluster.Consolidate = "" },
		"it is frozen":                      func(w *world) { w.kube.cluster.Freeze = true },
		"another process leads":             func(w *world) { w.kube.deposed = true },
		"actors are unknown":                func(w *world) { w.ray.residentsErr = errors.New("no") },
		"the API server has a newer spec":   func(w *world) { w.onlyFresh(func(c *nodepool.Cluster) { c.Generation++ }) },
		"the API server has another object": func(w *world) { w.onlyFresh(func(c *nodepool.Cluster) { c.UID = "uid-2" }) },
		"the API server has a freeze":       func(w *world) { w.onlyFresh(func(c *nodepool.Cluster) { c.Freeze = true }) },
		"the cache has another mode":        func(w *world) { w.onlyCached(func(c *nodepool.Cluster) { c.Mode = nodepool.Shadow }) },
		"the cache has unknown requests":    func(w *world) { w.onlyCached(func(c *nodepool.Cluster) { c.OwnedUnknown = "forbidden" }) },
		"it saves too little": func(w *world) {
			for i := range w.kube.cluster.Groups {
				w.kube.cluster.Groups[i].Price = new(float64)
			}
		},
		"an actor runs there that would be ended": func(w *world) {
			r := &w.ray.residents[0]
			r.Name, r.Namespace, r.Class, r.Restarts = "", "", "A", raydemand.RestartsAlways
		},
		"Ray was restarted": func(w *world) { w.ray.session = "session-2" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newHalfEmptyWorld(t, 2, nodepool.ConsolidateServe)
			w.place(w.pod(1), raydemand.Resident{Class: "A", Alive: true, Resources: raydemand.Bundle{}}) // only pod 0 may move
			fresh := 0
			w.kube.onFresh = func() {
				if fresh++; fresh == 1 {
					change(w)
				}
			}
			for range 24 {
				w.after(30 * time.Second)
				if fresh > 0 {
					break
				}
			}
			if fresh == 0 || len(w.ray.drains) > 0 {
				t.Errorf("drained %v after %d fresh reads, want none after one", w.ray.drained(), fresh)
			}
		})
	}
}

func TestRestartableActorsEndAtTheDeadlineIfTheRayClusterOptsIn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		named  bool
	}{
		"all are restarted":            {named: true},
		"a task has started there":     {change: func(w *world) { w.node(w.pod(0)).Available.Take(raydemand.Bundle{raydemand.CPU: raydemand.One}) }},
		"an actor cannot be restarted": {change: func(w *world) { w.ray.residents[0].Restarts = 0 }},
		"the actors cannot be read":    {change: func(w *world) { w.ray.residentsErr = errors.New("no") }},
		"only Serve replicas may move": {change: func(w *world) { w.kube.cluster.Consolidate = nodepool.ConsolidateServe }},
		"it is frozen":                 {change: func(w *world) { w.kube.cluster.Freeze = true }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHalfEmptyWorld(t, 2, nodepool.ConsolidateRestartable)
			w.ray.residents = nil
			for i := range 2 {
				id := w.node(w.pod(i)).ID
				w.ray.residents = append(w.ray.residents, raydemand.Resident{Class: "A", Node: id, Alive: true,
					Restarts: raydemand.RestartsAlways, Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(2)}})
			}
			w.minutes(12)
			if got := w.ray.drained(); !slices.Equal(got, []string{w.pod(0)}) {
				t.Fatalf("drained %v, want %s", got, w.pod(0))
			}
			if c.change != nil {
				c.change(w)
			}
			w.minutes(25)
			if len(w.kube.changes) > 0 {
				t.Fatalf("patched %+v before the deadline", w.kube.changes)
			}
			w.minutes(10)
			if named := len(w.kube.changes) > 0; named != c.named {
				t.Fatalf("patched %+v after the deadline", w.kube.changes)
			}
			if c.named {
				if got := w.lastChange(); got.Replicas != 1 || !slices.Equal(got.WorkersToDelete, []string{w.pod(0)}) {
					t.Errorf("target %+v, want 1 replica without %s", got, w.pod(0))
				}
			}
		})
	}
}

func TestRestartableActorsHaveTheirWholeTimeAfterTheOptIn(t *testing.T) {
	for name, c := range map[string]struct {
		before func(w *world) // an hour in which nothing may end
		then   func(w *world)
	}{
		"it opts in":              {func(w *world) { w.kube.cluster.Consolidate = "" }, func(w *world) { w.kube.cluster.Consolidate = nodepool.ConsolidateRestartable }},
		"it was frozen":           {func(w *world) { w.kube.cluster.Freeze = true }, func(w *world) { w.kube.cluster.Freeze = false }},
		"the maximum was lowered": {func(w *world) { w.kube.cluster.Groups[0].Max = 1 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHalfEmptyWorld(t, 2, nodepool.ConsolidateRestartable)
			w.c.config.DrainDeadline = 24 * time.Hour
			for i := range w.ray.residents {
				w.ray.residents[i].Name, w.ray.residents[i].Namespace = "", ""
				w.ray.residents[i].Class, w.ray.residents[i].Restarts = "A", raydemand.RestartsAlways
			}
			w.minutes(1)
			w.node(w.pod(0)).Status = raydemand.Draining // a user drained it
			c.before(w)
			w.minutes(60)
			if c.then != nil {
				c.then(w)
				w.minutes(29)
			}
			if len(w.kube.changes) > 0 {
				t.Fatalf("patched %+v before its deadline", w.kube.changes)
			}
			w.kube.cluster.Groups[0].Max = 9
			w.minutes(33)
			if len(w.kube.changes) == 0 || !slices.Equal(w.lastChange().WorkersToDelete, []string{w.pod(0)}) {
				t.Errorf("patched %+v, want %s named after its deadline", w.kube.changes, w.pod(0))
			}
		})
	}
}
