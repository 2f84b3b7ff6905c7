package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// sync makes Argo CD apply its manifest, which has so many replicas in every group and names no pods.
func (w *world) sync(replicas int) {
	cluster := &w.kube.cluster
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		g.Replicas, g.WorkersToDelete = replicas, nil
	}
	cluster.Generation++
	cluster.ScaledBy = "argocd-controller"
}

func reverted(d *addon.Decision) bool {
	return slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == observe.FindingReverted })
}

// fighting is a world in which Argo CD has set replicas back twice, and the worker that was wanted has joined.
func fighting(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 9))
	w.want(1, gpu(1))
	for range 2 {
		w.after(time.Minute)
		w.patchedTo(1, "growth as long as it is needed")
		w.sync(0)
	}
	d := w.after(time.Minute)
	if !d.Reverted || !reverted(d) || w.kube.emitted(addon.ReasonReplicasReverted) != 1 {
		t.Fatalf("reverted %v, findings %+v, Events %v, want the second revert to be reported", d.Reverted, d.Findings, w.kube.events)
	}
	w.patchedTo(1, "growth during the fight")
	w.operate()
	w.joinAll()
	w.want(0, nil)
	return w
}

func TestNoWorkerIsRemovedWhileAnotherManagerSetsReplicasBack(t *testing.T) {
	w := fighting(t)
	begun := w.now
	for w.now.Before(begun.Add(10 * time.Minute)) {
		d := w.after(10 * time.Second)
		if want := `field manager "argocd-controller" set replicas of group gpu back from 1 to 0 at 12:03:02 UTC, revert no. 2; no worker is removed until ` +
			begun.Add(10*time.Minute).Format("15:04:05 MST"); d.Paused != want || !reverted(d) {
			t.Fatalf("paused %q, findings %+v, want %q and the finding", d.Paused, d.Findings, want)
		}
	}
	w.nothingWritten("an idle worker during the fight")
	w.emitted(addon.ReasonReplicasReverted, 1, "the fight")
	d := w.after(time.Second)
	if d.Paused != "" || !slices.Equal(w.ray.drained(), []string{w.pod(0)}) {
		t.Errorf("paused %q, drained %v, want the idle worker drained after the fight", d.Paused, w.ray.drained())
	}
	if d := w.after(time.Hour); reverted(d) || w.kube.emitted(addon.ReasonReplicasReverted) != 1 {
		t.Errorf("an hour later: findings %+v, Events %v", d.Findings, w.kube.events)
	}
}

func TestADrainedWorkerIsNotNamedDuringAFight(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 9), gpuGroup("other", 0, 0, 9))
	w.group("other").Resources = raydemand.Bundle{raydemand.CPU: raydemand.Whole(64)}
	w.want(1, raydemand.Bundle{raydemand.CPU: raydemand.Whole(32)})
	w.after(time.Second)
	w.lastChange()
	w.sync(0)
	w.after(2 * time.Minute) // drains the idle worker of gpu, and grows the other group again
	if got := w.ray.drained(); !slices.Equal(got, []string{w.pod(0)}) {
		t.Fatalf("drained %v, want the idle worker", got)
	}
	w.kube.changes = nil
	w.sync(0)
	w.after(time.Second)
	for _, change := range w.kube.changes {
		for _, target := range change.Targets {
			if len(target.WorkersToDelete) > 0 {
				t.Errorf("target = %+v, want nobody named during the fight", target)
			}
		}
	}
}

func TestAFightThatOnlyAFreshReadShowsStopsTheReductionOfThatCycle(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 9))
	wrote := 0
	for n := range 2 {
		w.want(int64(n+2), gpu(1))
		w.after(time.Second)
		wrote = w.lastChange().Replicas
		w.operate()
		w.sync(1)
	}
	w.joinAll()
	// The caches are late: they do not show the second revert yet.
	cached := clone(w.kube.cluster)
	cached.Generation--
	cached.ScaledBy, cached.Groups[0].Replicas = nodepool.FieldManager, wrote
	w.kube.cached = &cached
	w.want(0, nil)
	d := w.after(2 * time.Minute)
	if len(w.ray.drained()) > 0 || !strings.Contains(d.Paused, "argocd-controller") || !d.Reverted {
		t.Errorf("drained %v, paused %q, reverted %v, want no drain", w.ray.drained(), d.Paused, d.Reverted)
	}
}
