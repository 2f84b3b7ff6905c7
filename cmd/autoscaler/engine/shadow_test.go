package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

var shadowKey = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

// shadowWorld sends decisions about one RayCluster with one group to a Shadow.
type shadowWorld struct {
	shadow *Shadow
	start  time.Time
}

func newShadowWorld() *shadowWorld {
	return &shadowWorld{shadow: newShadow(), start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (w *shadowWorld) at(seconds float64) time.Time {
	return w.start.Add(time.Duration(seconds * float64(time.Second)))
}

// decide is one decision: what we would have, what is written, at a second.
func (w *shadowWorld) decide(seconds float64, ours, theirs int, changes ...func(*decision.Decision)) {
	d := &decision.Decision{Cluster: shadowKey, UID: "u", At: w.at(seconds), Mode: nodepool.Shadow,
		Kube: nodepool.Cluster{Key: shadowKey, ScaledBy: "python-requests",
			Groups: []nodepool.WorkerGroup{{Name: "gpu", Replicas: theirs, Max: 1000, NumOfHosts: 1}}},
		Plan: planner.Plan{Groups: []planner.GroupPlan{{Name: "gpu", Desired: ours, Reasons: []planner.Reason{{Code: "launch", Message: "for work"}}}}},
	}
	for _, change := range changes {
		change(d)
	}
	w.shadow.Observe(d)
}

func (w *shadowWorld) differences(t *testing.T) []Difference {
	t.Helper()
	c, ok := w.shadow.Comparison(shadowKey)
	if !ok {
		t.Fatal("nothing is compared")
	}
	return c.Differences
}

func TestADifferenceShowsWhoWasFirstAndByHowMuch(t *testing.T) {
	type step struct {
		seconds      float64
		ours, theirs int
	}
	for name, c := range map[string]struct {
		steps   []step
		outcome Outcome
		lead    time.Duration
	}{
		"ours up first":                       {[]step{{0, 0, 0}, {1, 2, 0}, {9, 2, 2}}, OursFirst, 8 * time.Second},
		"theirs up first":                     {[]step{{0, 0, 0}, {1, 0, 2}, {4, 2, 2}}, TheirsFirst, -3 * time.Second},
		"ours down first":                     {[]step{{0, 3, 3}, {1, 0, 3}, {6, 0, 0}}, OursFirst, 5 * time.Second},
		"the lead counts from the last goal":  {[]step{{0, 0, 0}, {1, 1, 0}, {5, 3, 0}, {9, 3, 3}}, OursFirst, 4 * time.Second},
		"theirs in two steps":                 {[]step{{0, 0, 0}, {1, 3, 0}, {5, 3, 2}, {9, 3, 3}}, OursFirst, 8 * time.Second},
		"ours withdrawn":                      {[]step{{0, 1, 1}, {1, 2, 1}, {3, 1, 1}}, OursWithdrawn, 0},
		"theirs drains first, replicas later": {[]step{{0, 1, 1}, {1, 0, 1}, {3, 1, 1}, {9, 0, 0}}, OursFirst, 8 * time.Second},
		"theirs much later, for its own":      {[]step{{0, 1, 1}, {1, 0, 1}, {3, 1, 1}, {60, 0, 0}}, OursWithdrawn, 0},
		"theirs to something else":            {[]step{{0, 2, 2}, {1, 0, 2}, {3, 2, 2}, {9, 1, 1}}, OursWithdrawn, 0},
		"theirs withdrawn":                    {[]step{{0, 1, 1}, {1, 1, 2}, {3, 1, 1}}, TheirsWithdrawn, 0},
		"different from the start":            {[]step{{0, 2, 0}, {3, 2, 2}}, Settled, 0},
		"not over yet":                        {[]step{{0, 0, 0}, {1, 2, 0}, {9, 2, 1}}, StillDiffers, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newShadowWorld()
			for _, s := range c.steps {
				w.decide(s.seconds, s.ours, s.theirs)
			}
			all := w.differences(t)
			if len(all) != 1 {
				t.Fatalf("got %d differences, want 1: %+v", len(all), all)
			}
			if all[0].Outcome != c.outcome || all[0].Lead != c.lead {
				t.Errorf("got %s and %v, want %s and %v", all[0].Outcome, all[0].Lead, c.outcome, c.lead)
			}
		})
	}
}

func TestAChangeOfBothAtOnceIsNoDifference(t *testing.T) {
	w := newShadowWorld()
	w.decide(0, 0, 0)
	w.decide(1, 2, 2)
	if all := w.differences(t); len(all) != 0 {
		t.Errorf("got %+v", all)
	}
}

func TestADifferenceKeepsWhatBothWantedLastAndOurReason(t *testing.T) {
	w := newShadowWorld()
	w.decide(0, 0, 0)
	w.decide(1, 2, 0)
	w.decide(4, 3, 1)
	w.decide(6, 3, 3)
	want := []Difference{{Group: "gpu", At: w.at(1), Until: w.at(6), Ours: 3, Theirs: 1, Outcome: OursFirst, Lead: 2 * time.Second,
		Reason: planner.Reason{Code: "launch", Message: "for work"}, Writer: "python-requests"}}
	if diff := cmp.Diff(want, w.differences(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The other side's pods can be seen before its replicas. Heliostat then wants the same number, and launches none.
func TestADifferenceKeepsWhyWeBeganToWantIt(t *testing.T) {
	w := newShadowWorld()
	w.decide(0, 0, 0)
	w.decide(1, 1, 0)
	w.decide(4, 1, 0, func(d *decision.Decision) {
		d.Plan.Groups[0].Reasons = []planner.Reason{{Code: "not_needed", Message: "no waiting demand"}}
	})
	w.decide(5, 1, 1)
	if got := w.differences(t); len(got) != 1 || got[0].Reason.Code != "launch" {
		t.Errorf("%+v, want one, with the reason of its launch", got)
	}
}

func TestTheirsCountsPodsOfAllHostsWithinTheGroupsBounds(t *testing.T) {
	w := newShadowWorld()
	w.decide(0, 8, 9, func(d *decision.Decision) {
		d.Kube.Groups[0].NumOfHosts, d.Kube.Groups[0].Max = 4, 2
	})
	c, _ := w.shadow.Comparison(shadowKey)
	want := []ComparedGroup{{Name: "gpu", Ours: 8, Theirs: 8, Reason: planner.Reason{Code: "launch", Message: "for work"}}}
	if diff := cmp.Diff(want, c.Groups); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOnlyTimeInWhichBothSidesAreKnownIsCompared(t *testing.T) {
	w := newShadowWorld()
	blind := func(d *decision.Decision) { d.RayErr = errors.New("no route").Error() }
	w.decide(0, 1, 1)
	w.decide(10, 1, 1)
	w.decide(11, 2, 1)
	w.decide(12, 0, 1, blind)
	w.decide(50, 0, 1, func(d *decision.Decision) { d.ObserveFailed = true })
	w.decide(60, 2, 1)
	w.decide(64, 2, 2)
	w.decide(70, 2, 2)
	c, _ := w.shadow.Comparison(shadowKey)
	// Agreed until 11 and from 64 on, different from 11 to an unknown time before 12 and from 60 to 64.
	if c.Agreed != 17*time.Second || c.Compared != 21*time.Second || !c.Since.Equal(w.at(0)) {
		t.Errorf("agreed %v of %v since %v, want 17s of 21s since the start", c.Agreed, c.Compared, c.Since)
	}
}

func TestAClusterThatIsScaledByUsOrMadeAnewIsNotComparedWithThePast(t *testing.T) {
	w := newShadowWorld()
	w.decide(0, 1, 0)
	w.decide(1, 1, 0, func(d *decision.Decision) { d.Mode = nodepool.Managed })
	if _, ok := w.shadow.Comparison(shadowKey); ok {
		t.Error("a managed cluster is compared")
	}
	w.decide(2, 1, 0)
	w.decide(3, 1, 1, func(d *decision.Decision) { d.UID = "another" })
	if all := w.differences(t); len(all) != 0 {
		t.Errorf("the new one has the old one's %+v", all)
	}
	w.shadow.Forget(shadowKey)
	if _, ok := w.shadow.Comparison(shadowKey); ok {
		t.Error("a cluster that is gone is compared")
	}
}

func TestTheLatestDifferencesAreKeptNewestFirst(t *testing.T) {
	w := newShadowWorld()
	w.decide(0, 0, 0)
	for i := range shadowDifferences + 5 {
		w.decide(float64(10*i+1), i+1, i)
		w.decide(float64(10*i+6), i+1, i+1)
	}
	w.decide(10_000, 1, 0)
	all := w.differences(t)
	if len(all) != shadowDifferences+1 || all[0].Outcome != StillDiffers || all[1].Ours != shadowDifferences+5 {
		t.Errorf("%d differences, first %+v, then %+v", len(all), all[0], all[1])
	}
}

func TestAGroupThatGoesEndsItsDifference(t *testing.T) {
	w := newShadowWorld()
	w.decide(0, 0, 0)
	w.decide(1, 1, 0)
	w.decide(2, 0, 0, func(d *decision.Decision) { d.Kube.Groups, d.Plan.Groups = nil, nil })
	all := w.differences(t)
	if len(all) != 1 || all[0].Outcome != Settled || all[0].Until.IsZero() {
		t.Errorf("got %+v", all)
	}
}
