package why

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestARequestThatWasNotEvaluatedSaysSo decides, and then removes what the requests of the second and the third owner
// have, as if the evaluation had been cut short before them. Demand that no group could ever serve is still impossible.
func TestARequestThatWasNotEvaluatedSaysSo(t *testing.T) {
	s := read(t, `{"groups": [{"name": "gpu", "resources": {"GPU": 1}, "maxReplicas": 4}], "nodes": [], "ownedRequests": [
		{"id": "a", "owner": "ann", "requests": [{"resources": {"GPU": 1}, "count": 5}]},
		{"id": "b", "owner": "bob", "requests": [{"resources": {"GPU": 1}, "count": 2}]},
		{"id": "c", "owner": "cat", "requests": [{"resources": {"GPU": 2}, "count": 1}]}]}`)
	p, given, out := place.Decide(&s, model.Policy{})
	for i := range p.RestRequests[1:] {
		of := &p.RestRequests[1+i]
		of.None()
		of.Unevaluated = true
	}
	plans := newDecision(p, given, out).requests
	if got := plans[0]; got.State != raydemand.RequestCapped || got.Reason.Code != model.Capped {
		t.Errorf("a is %s (%s), want the unserved bundles capped", got.State, got.Reason.Code)
	}
	const sentence = "too many requests come before it"
	if got := plans[1]; got.State != raydemand.RequestCapped || got.Reason.Code != raydemand.CodeTooMany || !strings.Contains(got.Reason.Message, sentence) {
		t.Errorf("b is %s (%s): %s", got.State, got.Reason.Code, got.Reason.Message)
	}
	if got := plans[2]; got.State != raydemand.RequestImpossible || got.Reason.Code != model.Impossible {
		t.Errorf("c is %s (%s), want impossible", got.State, got.Reason.Code)
	}
}

// TestUnevaluatedBundlesHaveNoLimitAsTheirReason does the same to all requests that ask for a bundle: nothing is known
// of what limits them.
func TestUnevaluatedBundlesHaveNoLimitAsTheirReason(t *testing.T) {
	for _, evaluated := range []bool{true, false} {
		s := read(t, `{"groups": [{"name": "gpu", "resources": {"GPU": 1}, "maxReplicas": 4}], "ownedRequests": [
			{"id": "a", "owner": "ann", "allOrNothing": true, "requests": [{"resources": {"GPU": 1}, "count": 5}]}]}`)
		p, given, out := place.Decide(&s, model.Policy{})
		p.RestRequests[0].Unevaluated = !evaluated
		plan, want := Report(p, given, out), raydemand.CodeTooMany
		group := plan.Groups[0].Reasons[0].Code
		if evaluated {
			want = model.Capped
		}
		if got := plan.InfeasibleRequestResources[0]; got.Reason.Code != want || !got.OverREST {
			t.Errorf("evaluated (%t), its bundles are %q, over REST (%t), want %q over REST", evaluated, got.Reason, got.OverREST, want)
		}
		if (group == model.CodeTooMany) == evaluated {
			t.Errorf("evaluated (%t), its group says %q", evaluated, group)
		}
	}
}

func read(t *testing.T, text string) model.Snapshot {
	t.Helper()
	s, err := snapshotfile.ReadSnapshot(strings.NewReader(text), t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
