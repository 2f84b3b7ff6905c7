package planner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/plannertest"
)

// TestAGroupWithoutAPriceTakesPricesFromItsSubstitutesAlone has a dear and a cheap group for GPU work, the cheap one with many cores, which
// count where prices do not, and groups for CPU work.
func TestAGroupWithoutAPriceTakesPricesFromItsSubstitutesAlone(t *testing.T) {
	const gpus = `"groups": [{"name": "dear", "resources": {"CPU": 16, "GPU": 1}, "price": 10, "maxReplicas": 9},
		{"name": "cheap", "resources": {"CPU": 128, "GPU": 1}, "price": 2, "maxReplicas": 9}, `
	const gpuWork = `{"resources": {"GPU": 1}, "count": 3}`
	for name, c := range map[string]struct {
		snapshot string
		want     map[string]int
		unpriced []string
	}{
		"one that serves nothing that waits": {gpus + `{"name": "cpu", "resources": {"CPU": 16}, "maxReplicas": 9}], "pendingRequests": [` + gpuWork + `]`,
			map[string]int{"cheap": 3}, nil},
		"one that serves other work": {gpus + `{"name": "cpu", "resources": {"CPU": 16}, "maxReplicas": 9}], "pendingRequests": [` + gpuWork + `, {"resources": {"CPU": 16}, "count": 1}]`,
			map[string]int{"cheap": 3}, nil},
		"CPU groups are told apart by price though a GPU group has none": {`"groups": [{"name": "a", "resources": {"CPU": 8}, "price": 9, "maxReplicas": 9},
			{"name": "b", "resources": {"CPU": 16}, "price": 1, "maxReplicas": 9}, {"name": "gpu", "resources": {"CPU": 16, "GPU": 1}, "maxReplicas": 9}],
			"pendingRequests": [{"resources": {"CPU": 8}, "count": 1}, {"resources": {"GPU": 1}, "count": 1, "labelSelectors": [{"none": "x"}]}]`, map[string]int{"b": 1}, nil},
		"a rival": {gpus + `{"name": "rival", "resources": {"CPU": 32, "GPU": 1}, "maxReplicas": 9}], "pendingRequests": [` + gpuWork + `]`,
			map[string]int{"dear": 3}, []string{"group rival"}},
		"a rival that takes no launches": {gpus + `{"name": "rival", "resources": {"CPU": 8, "GPU": 1}, "maxReplicas": 9, "closed": "suspended"}], "pendingRequests": [` + gpuWork + `]`,
			map[string]int{"cheap": 3}, nil},
		"a rival of a rival": {gpus + `{"name": "rival", "resources": {"TPU": 4, "CPU": 128, "GPU": 1}, "maxReplicas": 9}], "pendingRequests": [` + gpuWork + `, {"resources": {"TPU": 4}, "count": 1}]`,
			map[string]int{"dear": 2, "rival": 1}, []string{"group rival"}},
		"a rival for a gang": {gpus + `{"name": "rival", "resources": {"CPU": 32, "GPU": 1}, "maxReplicas": 9}], "pendingGangRequests": [` + eachOf("SPREAD", `{"GPU": 1}, {"GPU": 1}`, 1) + `]`,
			map[string]int{"dear": 2}, []string{"group rival"}},
		"no prices at all are no finding": {`"groups": [{"name": "a", "resources": {"CPU": 8}, "maxReplicas": 9}, {"name": "b", "resources": {"CPU": 16}, "maxReplicas": 9}],
			"pendingRequests": [{"resources": {"CPU": 8}, "count": 1}]`, map[string]int{"a": 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Compute(plannertest.Read(t, `{`+c.snapshot+`}`), Policy{})
			if diff := cmp.Diff(c.want, plan.Launch); diff != "" {
				t.Errorf("launches (-want +got): %s", diff)
			}
			var unpriced []string
			for _, f := range plan.Findings {
				if f.Code == model.FindingUnpriced {
					unpriced = append(unpriced, f.Object)
				}
			}
			if diff := cmp.Diff(c.unpriced, unpriced); diff != "" {
				t.Errorf("findings (-want +got): %s", diff)
			}
		})
	}
}
