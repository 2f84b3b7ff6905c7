package engine

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli/printer"
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
func (w *shadowWorld) decide(seconds float64, ours, theirs int, changes ...func(*addon.Decision)) {
	d := &addon.Decision{Cluster: shadowKey, UID: "u", At: w.at(seconds), Mode: nodepool.Shadow,
		Kube: nodepool.Cluster{Key: shadowKey, ScaledBy: "python-requests",
			Groups: []nodepool.WorkerGroup{{Name: "gpu", Replicas: theirs, Max: 1000, NumOfHosts: 1}}},
		Plan: planner.Plan{Groups: []planner.GroupPlan{{Name: "gpu", Desired: ours, Reasons: []planner.Reason{{Code: "launch", Message: "for work"}}}}},
	}
	for _, change := range changes {
		change(d)
	}
	w.shadow.Observe(d)
}

func (w *shadowWorld) differences(t *testing.T) []apiv1.ShadowDifference {
	t.Helper()
	c := w.shadow.Comparison(shadowKey)
	if c.Since == nil {
		t.Fatal("nothing is compared")
	}
	return c.Differences
}

func TestADifferenceKeepsWhatBothWantedThen(t *testing.T) {
	type step struct {
		seconds      float64
		ours, theirs int
	}
	for name, c := range map[string]struct {
		steps        []step
		ours, theirs int
		agreed       int // -1 while they differ
	}{
		"theirs follows":     {[]step{{0, 0, 0}, {1, 2, 0}, {9, 2, 2}}, 2, 0, 2},
		"ours follows":       {[]step{{0, 0, 0}, {1, 0, 2}, {4, 2, 2}}, 0, 2, 2},
		"in several steps":   {[]step{{0, 0, 0}, {1, 1, 0}, {5, 3, 2}, {9, 3, 3}}, 3, 2, 3},
		"ours goes back":     {[]step{{0, 1, 1}, {1, 2, 1}, {3, 1, 1}}, 2, 1, 1},
		"from the start":     {[]step{{0, 2, 0}, {3, 2, 2}}, 2, 0, 2},
		"it is not over yet": {[]step{{0, 0, 0}, {1, 2, 0}, {9, 2, 1}}, 2, 1, -1},
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
			got := all[0]
			if got.Ours != c.ours || got.Theirs != c.theirs || (got.Until == nil) != (c.agreed < 0) || got.Agreed != nil && *got.Agreed != c.agreed {
				t.Errorf("got %+v, want %+v", got, c)
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
	want := []apiv1.ShadowDifference{{Group: "gpu", At: w.at(1), Until: new(w.at(6)), Ours: 3, Theirs: 1, Agreed: new(3),
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
	w.decide(4, 1, 0, func(d *addon.Decision) {
		d.Plan.Groups[0].Reasons = []planner.Reason{{Code: "not_needed", Message: "no waiting demand"}}
	})
	w.decide(5, 1, 1)
	if got := w.differences(t); len(got) != 1 || got[0].Reason.Code != "launch" {
		t.Errorf("%+v, want one, with the reason of its launch", got)
	}
}

func TestTheirsCountsPodsOfAllHostsWithinTheGroupsBounds(t *testing.T) {
	w := newShadowWorld()
	w.decide(0, 8, 9, func(d *addon.Decision) {
		d.Kube.Groups[0].NumOfHosts, d.Kube.Groups[0].Max = 4, 2
	})
	c := w.shadow.Comparison(shadowKey)
	want := []apiv1.ShadowGroup{{Name: "gpu", Ours: 8, Theirs: 8, Reason: planner.Reason{Code: "launch", Message: "for work"}}}
	if diff := cmp.Diff(want, c.Groups); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOnlyTimeInWhichBothSidesAreKnownIsCompared(t *testing.T) {
	w := newShadowWorld()
	blind := func(d *addon.Decision) { d.RayErr = errors.New("no route").Error() }
	w.decide(0, 1, 1)
	w.decide(10, 1, 1)
	w.decide(11, 2, 1)
	w.decide(12, 0, 1, blind)
	w.decide(50, 0, 1, func(d *addon.Decision) { d.ObserveFailed = true })
	w.decide(60, 2, 1)
	w.decide(64, 2, 2)
	w.decide(70, 2, 2)
	c := w.shadow.Comparison(shadowKey)
	// Agreed until 11 and from 64 on, different from 11 to an unknown time before 12 and from 60 to 64.
	if *c.Agreement != 17.0/21 || c.ComparedSeconds != 21 || !c.Since.Equal(w.at(0)) {
		t.Errorf("agreed %v of %v s since %v, want 17 s of 21 s since the start", *c.Agreement, c.ComparedSeconds, c.Since)
	}
}

func TestAClusterThatIsScaledByUsOrMadeAnewIsNotComparedWithThePast(t *testing.T) {
	w := newShadowWorld()
	w.decide(0, 1, 0)
	w.decide(1, 1, 0, func(d *addon.Decision) { d.Mode = nodepool.Managed })
	if w.shadow.Comparison(shadowKey).Since != nil {
		t.Error("a managed cluster is compared")
	}
	w.decide(2, 1, 0)
	w.decide(3, 1, 1, func(d *addon.Decision) { d.UID = "another" })
	if all := w.differences(t); len(all) != 0 {
		t.Errorf("the new one has the old one's %+v", all)
	}
	w.shadow.Forget(shadowKey)
	if w.shadow.Comparison(shadowKey).Since != nil {
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
	if len(all) != shadowDifferences+1 || all[0].Until != nil || all[1].Ours != shadowDifferences+5 {
		t.Errorf("%d differences, first %+v, then %+v", len(all), all[0], all[1])
	}
}

func TestAGroupThatGoesEndsItsDifference(t *testing.T) {
	w := newShadowWorld()
	w.decide(0, 0, 0)
	w.decide(1, 1, 0)
	w.decide(2, 0, 0, func(d *addon.Decision) { d.Kube.Groups, d.Plan.Groups = nil, nil })
	all := w.differences(t)
	if len(all) != 1 || all[0].Agreed != nil || all[0].Until == nil {
		t.Errorf("got %+v", all)
	}
}

func TestPublishedDecisionsInShadowAreComparedUntilTheClusterIsGone(t *testing.T) {
	a := newRecorder(slog.New(slog.DiscardHandler))
	d := decided()
	d.Mode, d.RayErr, d.ObserveFailed = nodepool.Shadow, "", false
	a.Publish(d)
	if c := a.shadow.Comparison(d.Cluster); c.Since == nil || !c.Since.Equal(d.At) {
		t.Errorf("got %+v", c)
	}
	a.Forget(d.Cluster)
	if c := a.shadow.Comparison(d.Cluster); c.Since != nil {
		t.Errorf("gone, and still %+v", c)
	}
}

func TestTheTableOfAComparisonTellsBothSides(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	agreement := 0.975
	reason := planner.Reason{Code: "launch", Message: "launching 2 pods for 2 × {GPU 1}"}
	out := printer.Page{Now: at.Add(5 * time.Minute)}
	printer.WriteShadow(&out, apiv1.ShadowComparison{Writer: "python-requests", Since: &at, ComparedSeconds: 3600, Agreement: &agreement,
		Groups: []apiv1.ShadowGroup{{Name: "gpu", Ours: 4, Theirs: 2, Reason: reason}},
		Differences: []apiv1.ShadowDifference{{At: at, Group: "gpu", Ours: 4, Theirs: 2, Reason: reason},
			{At: at, Until: new(at.Add(8100 * time.Millisecond)), Group: "gpu", Ours: 2, Theirs: 0, Agreed: new(2), Reason: reason}}})
	want := `The worker groups were last written by python-requests.
Both agreed during 97.5 % of the 60m in which both were known.

GROUP  OURS  THEIRS  WHY OURS
gpu    4     2       launching 2 pods for 2 × {GPU 1}

DIFFERED  FOR    GROUP  OURS  THEIRS  THEN  WHY OURS
5m ago    still  gpu    4     2       -     launching 2 pods for 2 × {GPU 1}
5m ago    8.1s   gpu    2     0       2     launching 2 pods for 2 × {GPU 1}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
