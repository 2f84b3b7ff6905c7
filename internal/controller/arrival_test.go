package controller

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// pending returns the only pod on its way in a decision's snapshot.
func (w *world) pending() *planner.Node {
	w.t.Helper()
	var found []*planner.Node
	for _, n := range w.cycle().Snapshot.Nodes {
		if n.State == planner.Pending && !n.Expected {
			found = append(found, &n)
		}
	}
	if len(found) != 1 || found[0].Arrival == nil {
		w.t.Fatalf("%d pods are on their way, want one with its stage", len(found))
	}
	return found[0]
}

func TestAWorkerIsExpectedAsTheOthersOfItsGroupCame(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 9))
	w.want(3, gpu(1))
	w.cycle()
	w.operate()
	created := w.now
	w.after(time.Second)
	w.pass(59 * time.Second)
	for i := range 3 {
		w.start(i)
	}
	w.cycle()
	w.pass(10 * time.Second)
	w.joinAll()
	w.cycle()
	for i := range 3 {
		w.busy(w.pod(i))
	}
	w.want(1, gpu(1))
	w.cycle()
	w.after(10 * time.Second) // Ray's report may lag behind what it has just placed
	w.operate()
	if got := w.pending(); got.Arrival.Stage != arrival.WaitsForNode || got.Arrival.ExpectedAt.Sub(got.Since) != 70*time.Second {
		t.Errorf("without a node: %+v, want it 70 s after %v", got.Arrival, got.Since)
	}
	w.pass(20 * time.Second)
	w.start(3)
	if got := w.pending(); got.Arrival.Stage != arrival.JoiningRay || got.Arrival.ExpectedAt.Sub(w.now) != 10*time.Second {
		t.Errorf("with a node: %+v, want it 10 s after %v", got.Arrival, w.now)
	}
	for i := range 3 {
		w.kube.cluster.Workers[i].ReadyAt = created.Add(75 * time.Second)
	}
	w.restart(Config{})
	if got := w.pending().Arrival; got.ExpectedAt.Sub(w.now) != 15*time.Second {
		t.Errorf("after a restart: %+v, want it 15 s after %v, as the pods say", got, w.now)
	}
}

func TestAPodIsExpectedWhenOthersOfItsGroupJoined(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var s arrival.History
	joins := func(uid string, took time.Duration) {
		pod := arrival.Pod{UID: uid, CreatedAt: now}
		s.Observe(now, []arrival.Group{{Name: "gpu", Pods: []arrival.Pod{pod}}}, nil)
		pod.Joined = true
		s.Observe(now.Add(took), []arrival.Group{{Name: "gpu", Pods: []arrival.Pod{pod}}}, nil)
	}
	for i, seconds := range []int{10, 20, 60} {
		joins(string(rune('a'+i)), time.Duration(seconds)*time.Second)
	}
	plan := &planner.RequestPlan{State: raydemand.RequestWaiting, Groups: []planner.RequestGroup{{Name: "gpu", Waiting: 1, Since: now}}}
	for after, want := range map[time.Duration]time.Duration{0: 20 * time.Second, 30 * time.Second: time.Minute} {
		if got := expectedAt(plan, &s, now.Add(after)); !got.Equal(now.Add(want)) {
			t.Errorf("after %v it is expected at %v, want %v", after, got.Sub(now), want)
		}
	}
	if got := expectedAt(plan, &s, now.Add(2*time.Minute)); !got.IsZero() {
		t.Errorf("what took longer than any before is expected at %v", got)
	}
	plan.Groups[0].Name = "cpu"
	if got := expectedAt(plan, &s, now); !got.IsZero() {
		t.Errorf("a group of which nothing is known is expected at %v", got)
	}
}
