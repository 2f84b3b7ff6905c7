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
