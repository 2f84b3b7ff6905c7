package planner

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

func TestAMinimumThatIsNotReachedNamesTheLimitAndWhatIsMissing(t *testing.T) {
	const two = `"groups": [{"name": "a", "resources": {"GPU": 1}, "minReplicas": 3}, {"name": "b", "resources": {"GPU": 1}, "minReplicas": 2}]`
	for name, c := range map[string]struct {
		snapshot string
		missing  int
		want     Reason
	}{
		"the pool of nodes": {
			`{"groups": [{"name": "b", "resources": {"GPU": 1}, "minReplicas": 4, "pools": [{"name": "p", "maxPods": 1, "resource": "gpu"}]}],
			"nodes": [{"pod": "b1", "group": "b", "state": "RUNNING", "total": {"GPU": 1}, "available": {}}]}`, 3,
			Reason{Code: model.CodePoolCeiling, Message: "3 pods short of its minimum of 4: pool p can hold no more pods of group b, at most 1 without others (has 1)"},
		},
		"in part": {
			`{"groups": [{"name": "b", "resources": {"GPU": 1}, "minReplicas": 4, "pools": [{"name": "p", "maxPods": 1, "resource": "gpu"}]}]}`, 3,
			Reason{Code: model.CodePoolCeiling, Message: "3 pods short of its minimum of 4: pool p can hold no more pods of group b, at most 1 without others (has 0, launching 1)"},
		},
		"all groups together": {`{"maxWorkers": 3, ` + two + `}`, 2, Reason{Code: model.CodeMaxWorkers, Message: "2 pods short of its minimum of 2: all groups together are at their maximum of 3"}},
		"before what waits": {`{"maxWorkers": 3, ` + two + `, "pendingRequests": [{"resources": {"GPU": 9}, "count": 1}]}`, 2,
			Reason{Code: model.CodeMaxWorkers, Message: "2 pods short of its minimum of 2: all groups together are at their maximum of 3"}},
		"pods on their way": {`{"policy": {"maxInFlight": 2}, ` + two + `}`, 2,
			Reason{Code: model.CodeInFlight, Message: "2 pods short of its minimum of 2: maxInFlight lets all groups together have 2 on the way at once (have 2)"}},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := plannertest.Read(t, c.snapshot)
			row := rowOf(t, Compute(snapshot, snapshot.Policy), "b")
			if !slices.Contains(row.Reasons, c.want) || row.BelowMin != c.missing {
				t.Errorf("%d missing, %+v, want %d missing and %+v", row.BelowMin, row.Reasons, c.missing, c.want)
			}
		})
	}
}

func TestABoundThatIsNotReachedIsNotCalledReached(t *testing.T) {
	plan := Compute(plannertest.Read(t, `{"maxWorkers": 6, "groups": [{"name": "m", "resources": {"TPU": 4}, "numOfHosts": 4}], "pendingRequests": [{"resources": {"TPU": 4}, "count": 8}]}`), Policy{})
	want := Reason{Code: Capped, Message: "all groups together may have 6 (have 0, launching 4), and a replica of group m is 4 pods"}
	if diff := cmp.Diff(want, plan.InfeasibleRequests[0].Reason); diff != "" {
		t.Error(diff)
	}
}

func rowOf(t *testing.T, plan Plan, name string) GroupPlan {
	t.Helper()
	at := slices.IndexFunc(plan.Groups, func(g GroupPlan) bool { return g.Name == name })
	if at < 0 {
		t.Fatalf("no group %s", name)
	}
	return plan.Groups[at]
}
