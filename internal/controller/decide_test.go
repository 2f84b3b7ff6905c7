package controller

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAPlanThatCannotBeComputedDecidesNothing(t *testing.T) {
	m, v := newMemory(), viewOf(1)
	v.State.Demand.Requests = requests(5)
	m.Remember(&v, settings())
	failing := func(s planner.Snapshot) (planner.Plan, error) {
		p, _ := planned(s)
		return p, errors.New("the process ends")
	}
	if i, err := m.Decide(v, settings(), failing, nil); err == nil || len(i.Launch)+len(i.Plan.Groups) > 0 || i.Any() {
		t.Errorf("decided %+v, error %v", i, err)
	}
}

// states renders a snapshot's nodes as pod=STATE.
func states(s planner.Snapshot) map[string]string {
	got := map[string]string{}
	for _, n := range s.Nodes {
		got[n.Pod] = string(n.State)
		if n.Expected {
			got[n.Pod] += " expected"
		}
	}
	return got
}

func TestAnyDecisionCanBeReplayedFromItsSnapshot(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 1, 4))
	w.busy(w.pod(0))
	w.want(3, gpu(1))
	replay(t, w.after(2*time.Minute))
}

// replay plans what the decision exports.
func replay(t *testing.T, d *addon.Decision) {
	t.Helper()
	text, err := json.Marshal(d.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := snapshotfile.ReadSnapshot(strings.NewReader(string(text)), "snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d.Plan, planner.Compute(replayed, replayed.Policy)); diff != "" {
		t.Errorf("the replayed plan differs (-decided +replayed):\n%s", diff)
	}
}

func TestWhatThePlanFindsIsPublished(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.node(w.pod(0)).Available = gpu(9)
	d := w.cycle()
	if !slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == planner.FindingOverstated }) {
		t.Errorf("findings = %+v, want %s", d.Findings, planner.FindingOverstated)
	}
}

// listedAtMost is how many expected pods a snapshot lists.
const listedAtMost = 4096

func TestAHugeGoalIsCountedAndNotListed(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 1<<31-1), gpuGroup("other", 0, 0, 1<<31-1))
	w.group("gpu").Replicas, w.group("other").Replicas = 1_000_000, 1_000_000
	w.want(1_500_000, gpu(1))
	d := w.cycle()
	if listed := len(d.Snapshot.Nodes); listed != listedAtMost {
		t.Errorf("%d nodes are listed, want %d", listed, listedAtMost)
	}
	w.nothingWritten("the pods on their way are enough")
	if len(d.Plan.Launch) > 0 {
		t.Errorf("launch = %v, want none", d.Plan.Launch)
	}
}

func TestPodsOnTheirWayThatAreNotListedCountInFlight(t *testing.T) {
	w := newWorld(t, Config{Policy: planner.Policy{MaxInFlight: 3 * listedAtMost}}, gpuGroup("gpu", 0, 0, 1<<31-1))
	w.group("gpu").Replicas = 2 * listedAtMost
	w.want(10*listedAtMost, gpu(1))
	w.cycle()
	if got := w.lastChange(); got.Replicas != 3*listedAtMost {
		t.Errorf("target = %+v, want replicas up to the cap of %d", got, 3*listedAtMost)
	}
}

func TestOneCallOfADriverNeverAsksForMoreThanTheInFlightCap(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 1<<31-1))
	w.want(1_000_000_000, gpu(1))
	w.cycle()
	if got := w.lastChange(); got.Replicas != 1000 || w.kube.emitted(addon.ReasonInFlightCap) != 1 {
		t.Errorf("target = %+v and events %v, want 1000 pods and the cap reported", got, w.kube.events)
	}
}

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
