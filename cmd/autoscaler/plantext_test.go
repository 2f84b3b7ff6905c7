package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
)

// text returns the plan of a snapshot as text.
func text(t *testing.T, snapshot string) string {
	t.Helper()
	code, out, errOut := command(t, snapshot, "autoscaler", "plan", "--snapshot", "-", "-o", "text")
	if code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	return out
}

func TestEqualGangsAreOneEntry(t *testing.T) {
	var gangs []string
	for i := range 5 {
		gangs = append(gangs, fmt.Sprintf(`{"id": "g%d", "strategy": "STRICT_SPREAD", "bundles": [{"CPU": 2}, {"CPU": 2}, {"CPU": 2}],
			"bundleLabelSelectors": [{"zone": "a"}, {"zone": "a"}, {"zone": "a"}]}`, i))
	}
	got := text(t, `{"groups": [{"name": "w", "resources": {"CPU": 6}, "labels": {"zone": "a"}, "maxReplicas": 3}], "pendingGangRequests": [`+strings.Join(gangs, ",")+`]}`)
	want := `Demand
  5 gangs g0, g1, g2, … each STRICT_SPREAD 3 × {CPU 2} where zone=a
    3 are placed on pods launched now, 2 are capped

Groups
  w: 0 → 3 pods (min 0, max 3), each {CPU 6}
    launching 3 pods for 3 gangs: 9 × {CPU 2} where zone=a

Decision
  launch 3 × w

Unmet
  2 gangs g3, g4 each STRICT_SPREAD 3 × {CPU 2} where zone=a: capped: needs 3 different nodes at
      once: group w is at its maximum of 3 (has 0, launching 3)
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestALaunchNamesTheGangAndTheCall(t *testing.T) {
	got := strings.Join(strings.Fields(text(t, `{"groups": [{"name": "w", "resources": {"CPU": 4}}], "pendingGangRequests": [{"id": "3f", "strategy": "PACK", "bundles": [{"CPU": 4}]}],
		"requestResources": [{"resources": {"CPU": 1}, "count": 8}], "keptResources": [{"resources": {"CPU": 1}, "count": 12}], "pendingRequests": [{"resources": {"CPU": 3}, "count": 4}]}`)), " ")
	for _, want := range []string{
		"pods for request_resources 8 × {CPU 1}, request_resources over REST 12 × {CPU 1}, gang 3f: 1 × {CPU 4}, 1 more kind of demand",
		" requests over REST 12 × {CPU 1} 12 are placed",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("want in it %q, got %s", want, got)
		}
	}
}

func TestWhatIsNotServedOfARequestNamesItsIDAndOwner(t *testing.T) {
	const snapshot = `{"groups": [{"name": "gpu", "resources": {"GPU": 1}, "maxReplicas": 1}],
		"ownedRequests": [{"id": "train-7", "owner": "ann", "requests": [{"resources": {"GPU": 1}, "count": 3}]}]}`
	const want = "  requests over REST 2 × {GPU 1} (request train-7 of ann): capped: "
	if got := text(t, snapshot); !strings.Contains(got, want) {
		t.Errorf("want in it %q, got %s", want, got)
	}
	r := newRemote(t)
	s, err := snapshotfile.ReadSnapshot(strings.NewReader(snapshot), "snapshot")
	must(t, err)
	r.view.Snapshot, r.view.Plan = s, planner.Compute(s, s.Policy)
	if _, got, _ := command(t, "", "autoscaler", "status", "ml/llm"); !strings.Contains(got, want) {
		t.Errorf("of a live cluster: want in it %q, got %s", want, got)
	}
}

func TestAPageOfManyShapesHasAnEnd(t *testing.T) {
	var requests []string
	for i := range 300 {
		requests = append(requests, fmt.Sprintf(`{"resources": {"TPU": %d}, "count": 2}`, i+1))
	}
	got := text(t, `{"groups": [{"name": "w", "resources": {"CPU": 4}}], "pendingRequests": [`+strings.Join(requests, ",")+`]}`)
	for _, want := range []string{"\n  and 260 more kinds of demand, 520 asked\n    520 are impossible\n", "\n  and 260 more kinds of demand for other reasons; see autoscaler explain --demand\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("want in it %q, got %s", want, got)
		}
	}
	const roomy = `{"groups": [{"name": "w", "resources": {"TPU": 99999}}], "nodes": [{"pod": "w-1", "group": "w", "state": "IDLE", "resources": {"TPU": 99999}}], `
	served := text(t, roomy+`"pendingRequests": [`+strings.Join(requests, ",")+`]}`)
	if want := "\n  and 260 more kinds of demand, 520 asked\n    520 are served by running nodes\n"; !strings.Contains(served, want) {
		t.Errorf("want in it %q, got %s", want, served)
	}
	if n := strings.Count(got, "\n"); n > 200 {
		t.Errorf("%d lines", n)
	}
}
