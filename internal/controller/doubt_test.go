package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestWhyNothingMayBeTakenAway(t *testing.T) {
	for name, c := range map[string]struct {
		around func(m *memory, v *observe.View, link *link)
		want   string
	}{
		"nothing prevents it":   {func(*memory, *observe.View, *link) {}, ""},
		"Ray does not answer":   {func(_ *memory, v *observe.View, _ *link) { v.StateErr = errors.New("no answer") }, "cannot be read"},
		"no head is listed":     {func(_ *memory, v *observe.View, _ *link) { v.Head = nil }, "own head"},
		"the session is new":    {func(_ *memory, v *observe.View, l *link) { l.Since = v.Now.Add(1 - sessionPause) }, "session is new"},
		"the reading is old":    {func(_ *memory, v *observe.View, l *link) { l.Now = v.ReadAt.Add(11 * time.Second) }, "11s old"},
		"requests are unknown":  {func(_ *memory, v *observe.View, _ *link) { v.Cluster.OwnedUnknown = "forbidden" }, "ResourceRequests are unknown: forbidden"},
		"the policy is unknown": {func(_ *memory, v *observe.View, _ *link) { v.Cluster.PolicyUnknown = "forbidden" }, "CapacityPolicies are unknown: forbidden"},
		"a patch failed":        {func(m *memory, v *observe.View, _ *link) { m.Patches.Failed(v.Now, errors.New("refused")) }, "last patch failed"},
		"a patch was retried": {func(m *memory, v *observe.View, _ *link) {
			m.Patches.Failed(v.Now, errors.New("refused"))
			m.Patches.Wrote(2, nil, nil)
		}, ""},
		"the API server is silent": {func(m *memory, v *observe.View, _ *link) { m.FreshRead(v.Now, errors.New("timeout")) }, "before a reduction failed: timeout"},
		"the API server is back": {func(m *memory, v *observe.View, _ *link) {
			m.FreshRead(v.Now, errors.New("timeout"))
			m.FreshRead(v.Now, nil)
		}, ""},
		"most pods are gone": {func(m *memory, v *observe.View, _ *link) {
			*v = later(*v, time.Second)
			v.Cluster.Workers = v.Cluster.Workers[:1]
			joined(v)
			m.Remember(v, settings())
		}, "2 of"},
	} {
		t.Run(name, func(t *testing.T) {
			m, v := newMemory(), viewOf(3)
			m.Remember(&v, settings())
			link := link{Now: v.ReadAt, Since: v.Now.Add(-sessionPause), MaxDataAge: 10 * time.Second}
			c.around(&m, &v, &link)
			if got := m.Paused(v, link); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("paused by %q, want %q", got, c.want)
			}
		})
	}
}

// TestTheDropGuardOutlivesTheRaySession: a GCS that starts again without its nodes is what it must notice.
func TestTheDropGuardOutlivesTheRaySession(t *testing.T) {
	m, v := newMemory(), viewOf(3)
	m.Remember(&v, settings())
	m.VoidRay()
	v = later(v, time.Second)
	v.State.Nodes = v.State.Nodes[:1]
	joined(&v)
	m.Remember(&v, settings())
	if !m.guard.Doubts() || !m.WantsFreshList(v.Now.Add(time.Minute)) {
		t.Error("three nodes are gone at once, and nothing doubts it")
	}
	v = later(v, time.Minute)
	for range 2 {
		m.RememberFresh(&v, settings(), true)
		v = later(v, time.Minute)
	}
	if m.RememberFresh(&v, settings(), false); m.guard.Doubts() {
		t.Error("two fresh lists have confirmed the loss, and it is doubted")
	}
}

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

func TestWithoutAnAnswerFromRayNothingUnknownIsReported(t *testing.T) {
	unknown := []planner.Reason{{Code: planner.CodeClosed, Message: "closed: Ray does not answer, so its demand is unknown, and nothing is launched"}}
	for name, restarted := range map[string]bool{"the last account counts": false, "after a restart a ready pod has joined": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{}, gpuGroup("gpu", 2, 0, 4))
			w.busy(w.pod(0))
			w.after(time.Second)
			w.ray.stateErr = errors.New("unavailable")
			if restarted {
				w.restart(Config{})
			}
			for range 120 {
				d := w.after(time.Second)
				if diff := cmp.Diff(unknown, d.Plan.Groups[0].Reasons); diff != "" {
					t.Fatalf("reasons (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(map[string]string{w.pod(0): "RUNNING", w.pod(1): "RUNNING"}, states(d.Snapshot)); diff != "" {
					t.Fatalf("nodes (-want +got):\n%s", diff)
				}
			}
			w.nothingWritten("nothing is known")
		})
	}
}
