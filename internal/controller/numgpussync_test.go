package controller

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// sliceGroup is a group of MIG slices of which the operator counts the first kind only: its pods announce 2 GPUs and
// get 3.
func sliceGroup(mode nodepool.SyncMode, replicas int) nodepool.WorkerGroup {
	three, two := raydemand.Whole(3), raydemand.Whole(2)
	g := gpuGroup("slices", replicas, 0, 5)
	g.Resources[raydemand.GPU] = two
	g.NumGPUsSync = mode
	g.GPUs = nodepool.GPUSpec{Derived: &two, DerivedBy: "limit nvidia.com/mig-1g.5gb", Field: "rayStartParams.num-gpus"}
	g.Reported = &nodepool.ReportedGPUs{Value: &three, Source: "a test's nodes"}
	return g
}

func TestWhatThePluginReportsIsWrittenWhenTheModeSaysSo(t *testing.T) {
	tests := []struct {
		name     string
		mode     nodepool.SyncMode
		replicas int
		change   func(*world)
		writes   bool
		code     string
	}{
		{name: "report writes nothing", mode: nodepool.SyncReport, code: nodepool.SyncReportOnly},
		{name: "no mode is report", mode: "", code: nodepool.SyncReportOnly},
		{name: "an empty group", mode: nodepool.SyncWhenEmpty, writes: true},
		{name: "a group with pods is not empty", mode: nodepool.SyncWhenEmpty, replicas: 1, code: nodepool.SyncNotEmpty},
		{name: "a group with pods is written under enforce", mode: nodepool.SyncEnforce, replicas: 1, writes: true},
		{name: "a pod that ends counts", mode: nodepool.SyncWhenEmpty, code: nodepool.SyncNotEmpty, change: func(w *world) {
			w.kube.cluster.Workers = append(w.kube.cluster.Workers, nodepool.Worker{Pod: "old", Group: "slices", Terminating: true})
		}},
		{name: "a group that is about to get pods is not empty", mode: nodepool.SyncWhenEmpty, code: nodepool.SyncNotEmpty, change: func(w *world) {
			w.want(1, gpu(2))
			w.kube.applyErr = errors.New("the API server is gone")
		}},
		{name: "nothing is known", mode: nodepool.SyncEnforce, code: nodepool.SyncNotReported, change: func(w *world) {
			w.group("slices").Reported = &nodepool.ReportedGPUs{Source: "no node could hold a pod of the group"}
		}},
		{name: "nothing differs", mode: nodepool.SyncEnforce, change: func(w *world) {
			two := raydemand.Whole(2)
			w.group("slices").Reported = &nodepool.ReportedGPUs{Value: &two}
		}},
		{name: "frozen", mode: nodepool.SyncEnforce, code: nodepool.SyncNotManaged, change: func(w *world) { w.kube.cluster.Freeze = true }},
		{name: "suspended", mode: nodepool.SyncEnforce, code: nodepool.SyncNotManaged, change: func(w *world) { w.kube.cluster.Suspended = true }},
		{name: "shadow", mode: nodepool.SyncEnforce, code: nodepool.SyncNotManaged, change: func(w *world) { w.kube.cluster.Mode = nodepool.Shadow }},
		{name: "another leads", mode: nodepool.SyncEnforce, code: nodepool.SyncNotLeading, change: func(w *world) { w.kube.deposed = true }},
		{name: "Recreate", mode: nodepool.SyncEnforce, code: nodepool.SyncRecreate, change: func(w *world) { w.kube.cluster.UpgradeStrategy = "Recreate" }},
		{name: "a RayService owns it", mode: nodepool.SyncEnforce, code: nodepool.SyncOwned, change: func(w *world) {
			w.kube.cluster.Owner = nodepool.Owner{Kind: "RayService", Name: "chat"}
		}},
		{name: "a refused spec", mode: nodepool.SyncEnforce, code: nodepool.SyncSpecRefused, change: func(w *world) { w.kube.cluster.Refused = true }},
		{name: "Ray does not answer", mode: nodepool.SyncWhenEmpty, writes: true, change: func(w *world) { w.ray.stateErr = errors.New("down") }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, Config{}, sliceGroup(nodepool.SyncReport, test.replicas))
			w.group("slices").NumGPUsSync = test.mode
			if test.change != nil {
				test.change(w)
			}
			pods := len(w.kube.cluster.Workers)
			d := w.after(time.Second)
			if got := len(w.kube.synced) == 1; got != test.writes || len(w.kube.synced) > 1 {
				t.Fatalf("written %+v, want one write: %v", w.kube.synced, test.writes)
			}
			if got := d.NumGPUs["slices"]; got.Code != test.code || (got.Why == "") != (test.code == "") {
				t.Errorf("the decision says %q (%s), want %q", got.Code, got.Why, test.code)
			}
			if test.writes {
				three := raydemand.Whole(3)
				want := nodepool.NumGPUsChange{Cluster: key, UID: "uid-1", Generation: 1, Targets: []nodepool.NumGPUsTarget{
					{Group: "slices", Field: "rayStartParams.num-gpus", GPUs: three}}}
				if diff := cmp.Diff(want, w.kube.synced[0]); diff != "" {
					t.Errorf("change (-want +got):\n%s", diff)
				}
				w.emitted(addon.ReasonNumGPUsWritten, 1, "the number is written")
				if after := w.after(time.Second); after.NumGPUs["slices"].Mismatch || len(w.kube.synced) != 1 {
					t.Errorf("afterwards %+v, written %d times", after.NumGPUs["slices"], len(w.kube.synced))
				}
			}
			if len(w.kube.changes) > 0 || len(w.kube.cluster.Workers) != pods {
				t.Errorf("the scale was changed too: %+v", w.kube.changes)
			}
		})
	}
}

// A number and a scale are never written in one cycle, and demand goes first: the group is planned as what it
// announces.
func TestScaleGoesBeforeTheNumberOfGPUs(t *testing.T) {
	w := newWorld(t, Config{}, sliceGroup(nodepool.SyncReport, 0))
	w.group("slices").NumGPUsSync = nodepool.SyncEnforce
	w.want(1, gpu(2))
	d := w.after(time.Second)
	tried := slices.ContainsFunc(d.Actions, func(a addon.Action) bool { return a.Kind == addon.ActionSync })
	if tried || len(w.kube.changes) != 1 || len(w.kube.synced) != 0 || d.NumGPUs["slices"].Code != nodepool.SyncLater {
		t.Fatalf("patched %+v, written %+v, code %q; want the scale alone", w.kube.changes, w.kube.synced, d.NumGPUs["slices"].Code)
	}
	w.after(time.Second)
	if len(w.kube.changes) != 1 || len(w.kube.synced) != 1 {
		t.Errorf("patched %+v, written %+v; want the number in the cycle after", w.kube.changes, w.kube.synced)
	}
}

func TestARefusalOfTheAdapterIsBelievedForAMinute(t *testing.T) {
	w := newWorld(t, Config{}, sliceGroup(nodepool.SyncReport, 0))
	w.group("slices").NumGPUsSync = nodepool.SyncEnforce
	w.kube.syncErr = &nodepool.SyncRefusal{Code: nodepool.SyncFieldManaged, Why: "Argo CD applies it"}
	d := w.after(time.Second)
	if got := d.NumGPUs["slices"]; got.Code != nodepool.SyncFieldManaged || got.Why != "Argo CD applies it" || d.Err != "" {
		t.Fatalf("code %q (%s), error %q", got.Code, got.Why, d.Err)
	}
	tried := func(d *addon.Decision) bool {
		return slices.ContainsFunc(d.Actions, func(a addon.Action) bool { return a.Kind == addon.ActionSync })
	}
	if !tried(d) || tried(w.after(58*time.Second)) {
		t.Error("it was not tried once and then believed")
	}
	w.kube.syncErr = nil
	if !tried(w.after(3*time.Second)) || len(w.kube.synced) != 1 {
		t.Error("it was not tried again after a minute")
	}
}

func TestWhatSomebodyUndoesTwiceIsLeftAlone(t *testing.T) {
	w := newWorld(t, Config{}, sliceGroup(nodepool.SyncReport, 0))
	undo := func() {
		w.group("slices").NumGPUsSync = nodepool.SyncEnforce
		w.group("slices").Resources = raydemand.Bundle{raydemand.GPU: raydemand.Whole(2)}
	}
	for range 4 {
		undo()
		w.after(time.Second)
	}
	undo()
	if d := w.after(time.Second); d.NumGPUs["slices"].Code != nodepool.SyncReverted || len(w.kube.synced) != 2 {
		t.Errorf("code %q after %d writes, want %s after 2", d.NumGPUs["slices"].Code, len(w.kube.synced), nodepool.SyncReverted)
	}
	w.after(10 * time.Minute)
	if len(w.kube.synced) != 3 {
		t.Errorf("written %d times, want once more when the window is over", len(w.kube.synced))
	}
}

func TestNumbersThatAlternateAreWrittenTwiceEach(t *testing.T) {
	w := newWorld(t, Config{}, sliceGroup(nodepool.SyncEnforce, 1))
	for i := range int64(120) {
		v := raydemand.Whole(3 + i%2)
		w.group("slices").Reported = &nodepool.ReportedGPUs{Value: &v, Source: "nodes"}
		w.after(5 * time.Second)
	}
	if len(w.kube.synced) != 4 {
		t.Errorf("%d writes in 10 minutes, want 4", len(w.kube.synced))
	}
}

func TestAWriteThatFailsIsTriedAgainWithPauses(t *testing.T) {
	w := newWorld(t, Config{}, sliceGroup(nodepool.SyncReport, 0))
	w.group("slices").NumGPUsSync = nodepool.SyncEnforce
	w.kube.syncErr = errors.New("the API server is gone")
	if d := w.cycle(); d.Err == "" || d.NumGPUs["slices"].Code != nodepool.SyncLater {
		t.Errorf("error %q, code %q", d.Err, d.NumGPUs["slices"].Code)
	}
	w.kube.syncErr = nil
	if w.after(100 * time.Millisecond); len(w.kube.synced) != 0 {
		t.Error("written again without a pause")
	}
	if w.after(time.Second); len(w.kube.synced) != 1 {
		t.Error("not written after the pause")
	}
}
