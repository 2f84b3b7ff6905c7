package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

// The reason names what decided, not other differences between two groups.
func TestWhyAnotherGroupWasTakenIsTrue(t *testing.T) {
	const racks = `{"groups": [{"name": "a", "resources": {"GPU": 4}, "labels": {"rack": "r1"}, "maxReplicas": 2, "price": 10},
		{"name": "b", "resources": {"GPU": 4}, "labels": {"rack": "r2"}, "maxReplicas": 8, "price": 12}, {"name": "bare", "resources": {"GPU": 4}, "price": 1}]`
	const sizes = `{"groups": [{"name": "a", "resources": {"GPU": 8}, "price": 28}, {"name": "b", "resources": {"GPU": 1}, "price": 4}]`
	for name, c := range map[string]struct {
		snapshot, group string
		want            Reason
	}{
		"the first selector, not the price": {
			`{"groups": [{"name": "a", "resources": {"GPU": 1}, "labels": {"t": "x"}, "price": 9}, {"name": "b", "resources": {"GPU": 1}, "labels": {"t": "y"}, "price": 1}],
			"pendingRequests": [{"resources": {"GPU": 1}, "count": 3, "labelSelectors": [{"t": "x"}, {"t": "y"}]}]}`, "b",
			Reason{Code: model.CodeNotChosen, Message: "{GPU 1} where t=x, else t=y: group a was chosen: its labels match choice 1 of the demand, before choice 2"},
		},
		"the label that the gang shares": {
			racks + `, "pendingGangRequests": [{"strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 4}, {"GPU": 4}, {"GPU": 4}]}]}`, "bare",
			Reason{Code: model.CodeLabels, Message: "{GPU 4}: it lacks the gang's topology label rack"},
		},
		"the maximum, where the gang needs more": {
			racks + `, "pendingGangRequests": [{"strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 4}, {"GPU": 4}, {"GPU": 4}]}]}`, "a",
			Reason{Code: model.CodeAtMax, Message: "{GPU 4}: rack=r1 has no room for the gang's 3 bundles: group a can add only 2 pods: its maximum is 2 (has 0)"},
		},
		"the maximum, where a strictly spread gang needs more nodes": {
			racks + `, "pendingGangRequests": [{"strategy": "STRICT_SPREAD", "topologyLabel": "rack", "bundles": [{"GPU": 1}, {"GPU": 1}, {"GPU": 1}]}]}`, "a",
			Reason{Code: model.CodeAtMax, Message: "{GPU 1}: rack=r1 has no room for the gang's 3 bundles: group a can add only 2 pods: its maximum is 2 (has 0)"},
		},
		"the place of the gang's other bundles": {
			racks + `, "nodes": [{"pod": "b1", "group": "b", "state": "RUNNING", "total": {"GPU": 4}, "available": {"GPU": 0}, "labels": {"rack": "r2"}, "placedLabels": {"_PG_q": ""}}],
			"pendingGangRequests": [{"id": "q", "strategy": "PACK", "topologyLabel": "rack", "bundles": [{"GPU": 4}]}]}`, "a",
			Reason{Code: model.CodeLabels, Message: "{GPU 4}: the gang's other bundles are on rack=r2"},
		},
		"the price of all, where more pods are needed": {
			sizes + `, "pendingRequests": [{"resources": {"GPU": 1}, "count": 8}]}`, "b",
			Reason{Code: model.CodeNotChosen, Message: "{GPU 1}: group a was chosen: price 32 > 28 (8 pods instead of 1 pod)"},
		},
		"the price of all, where fewer pods are needed": {
			sizes + `, "pendingRequests": [{"resources": {"GPU": 1}, "count": 4}]}`, "a",
			Reason{Code: model.CodeNotChosen, Message: "{GPU 1}: group b was chosen: price 28 > 16 (1 pod instead of 4 pods)"},
		},
		"the size, where a third group has no price": {
			`{"groups": [{"name": "a", "resources": {"CPU": 16, "GPU": 1}, "price": 3}, {"name": "b", "resources": {"CPU": 32, "GPU": 1}, "price": 5}, {"name": "c", "resources": {"CPU": 64, "GPU": 1}}],
			"pendingRequests": [{"resources": {"GPU": 1}, "count": 3}]}`, "b",
			Reason{Code: model.CodeNotChosen, Message: "{GPU 1}: group a was chosen: its pods are smaller"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, reasonsOf(Compute(plannertest.Read(t, c.snapshot), Policy{}))[c.group]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARowOfWhatCannotBeHadInFullNamesTheLimit(t *testing.T) {
	const gang = `"pendingGangRequests": [{"strategy": "STRICT_SPREAD", "bundles": [{"GPU": 1}, {"GPU": 1}, {"GPU": 1}]}]}`
	const claim = `"requestResources": [{"resources": {"GPU": 1}, "count": 3}]}`
	const note = "waiting demand cannot be served in full, so nothing is launched for it; group g can add only 2 pods: "
	for name, c := range map[string]struct{ snapshot, want string }{
		"its maximum":              {`{"groups": [{"name": "g", "resources": {"GPU": 1}, "maxReplicas": 2}], ` + gang, "its maximum is 2 (has 0)"},
		"the maximum of all":       {`{"maxWorkers": 2, "groups": [{"name": "g", "resources": {"GPU": 1}}], ` + gang, "all groups together may have 2 (have 0)"},
		"the nodes that there are": {`{"groups": [{"name": "g", "resources": {"GPU": 1}, "pools": [{"name": "p", "maxPods": 2, "resource": "gpu"}]}], ` + gang, "its node pools hold at most 2 of its pods if no other pods use them (has 0)"},
		"of request_resources":     {`{"groups": [{"name": "g", "resources": {"GPU": 1}, "maxReplicas": 2}], ` + claim, "its maximum is 2 (has 0)"},
	} {
		t.Run(name, func(t *testing.T) {
			want := Reason{Code: model.CodeNotInFull, Message: note + c.want}
			if diff := cmp.Diff(want, reasonsOf(Compute(plannertest.Read(t, c.snapshot), Policy{}))["g"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}
