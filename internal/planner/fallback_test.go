package planner

import (
	"slices"
	"testing"
)

func TestAGroupSaysWhyAGangFellBack(t *testing.T) {
	s := read(t, `{"groups": [{"name": "a", "resources": {"GPU": 4}, "maxReplicas": 1}, {"name": "b", "resources": {"GPU": 2}}],
		"pendingGangRequests": [{"id": "c", "strategy": "STRICT_SPREAD", "bundles": [{"GPU": 4}, {"GPU": 4}], "fallbackBundles": [[{"GPU": 2}, {"GPU": 2}]]}]}`)
	e, _ := ExplainGroup(s, Policy{}, "a")
	want := Detail{"gang c, choice 1 of 2: 2 × {GPU 4}", Reason{CodeAtMax, "the gang goes by a later choice: group a may have only 1 pod more: its maximum is 1 (has 0)"}}
	if !slices.Contains(e.Details, want) {
		t.Errorf("want among them %+v, got %+v", want, e.Details)
	}
}
