package engine

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli/printer"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

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

func TestTheTableOfAComparisonTellsBothSidesAndTheLead(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	agreement, lead := 0.975, 8.1
	reason := planner.Reason{Code: "launch", Message: "launching 2 pods for 2 × {GPU 1}"}
	now := func() time.Time { return at.Add(5 * time.Minute) }
	out := printer.Page{Look: printer.Look{Now: now}}
	printer.WriteShadow(&out, apiv1.ShadowComparison{Writer: "python-requests", Since: &at, ComparedSeconds: 3600, Agreement: &agreement,
		OursFirst: 1, MedianLeadSeconds: &lead, Groups: []apiv1.ShadowGroup{{Name: "gpu", Ours: 4, Theirs: 2, Reason: reason}},
		Differences: []apiv1.ShadowDifference{{At: at, Group: "gpu", Ours: 4, Theirs: 2, Outcome: apiv1.Differs, Reason: reason},
			{At: at, Until: &at, Group: "gpu", Ours: 2, Theirs: 0, Outcome: apiv1.OursFirst, LeadSeconds: &lead, Reason: reason}}}, apiv1.Cluster{})
	want := `The worker groups were last written by python-requests.
Both agreed during 97.5 % of the 60m in which both were known.
Heliostat was first once, the other writer 0 times; in the median, Heliostat was 8.1s earlier.

GROUP  OURS  THEIRS  WHY OURS
gpu       4       2  launching 2 pods for 2 × {GPU 1}

DIFFERED  GROUP  OURS  THEIRS  OUTCOME       WHY OURS
  5m ago  gpu       4       2  differs       launching 2 pods for 2 × {GPU 1}
  5m ago  gpu       2       0  8.1s earlier  launching 2 pods for 2 × {GPU 1}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhyNothingIsComparedIsTold(t *testing.T) {
	age := 0.1
	for want, c := range map[string]apiv1.Cluster{
		"Heliostat scales this RayCluster itself (managed by the default)":             {Mode: nodepool.Managed, ModeReason: "managed by the default", DataAgeSeconds: &age},
		"Heliostat ignores this RayCluster (off by the annotation)":                    {Mode: nodepool.Off, ModeReason: "off by the annotation", DataAgeSeconds: &age},
		"the state of Ray in ml/llm has not been read yet":                             {Namespace: "ml", Name: "llm", Mode: nodepool.Shadow},
		"Heliostat has just begun to watch this RayCluster and has no plan to compare": {Mode: nodepool.Shadow, DataAgeSeconds: &age},
	} {
		var out printer.Page
		printer.WriteShadow(&out, apiv1.ShadowComparison{}, c)
		text := strings.Join(strings.Fields(out.String()), " ")
		if !strings.HasPrefix(text, "Nothing is compared: "+want) {
			t.Errorf("%q, want %s", text, want)
		}
	}
}
