package requestrules

import (
	"strings"
	"testing"

	kubejson "k8s.io/apimachinery/pkg/util/json"

	"heliostat.dev/heliostat/pkg/nodepool/capacity/policytext"
)

// What the API server accepts in a CapacityPolicy and what Heliostat can read must be the same, except for the few rules
// that the schema cannot say.
func TestTheDefinitionAndTheReaderOfPoliciesAgree(t *testing.T) {
	policies := readDefinitionOf(t, "capacitypolicies")
	group := func(members string) string { return `{"keepWarm": [{"group": "gpu", ` + members + `}]}` }
	schedule := func(members string) string { return group(`"schedules": [{` + members + `}]`) }
	for _, c := range []struct {
		spec  string
		valid bool
		// only the reader refuses it, because the schema cannot say why
		onlyRead bool
	}{
		{`{}`, true, false},
		{group(`"count": 2`), true, false},
		{group(`"count": -1`), false, false},
		{group(`"count": 10001`), false, false},
		{group(`"cuont": 2`), false, false},
		{group(`"count": 1, "resources": {"GPU": 1}`), false, false},
		{group(`"count": 1, "slice": {"memory": "10Gi"}`), false, false},
		{group(`"count": 1, "labelSelectors": [{"zone": "a"}]`), false, false},
		{`{"keepWarm": [{"count": 1}]}`, false, false},
		{`{"keepWarm": [{"resources": {"GPU": 0.5}, "labelSelectors": [{"zone": "a"}], "count": 1}]}`, true, false},
		{`{"keepWarm": [{"resources": {"GPU": 0}, "count": 1}]}`, false, false},
		{`{"keepWarm": [{"resources": {"GPU": -1}, "count": 1}]}`, false, false},
		{`{"keepWarm": [{"slice": {"memory": "10Gi", "isolation": "hardware"}, "count": 1}]}`, true, false},
		{`{"keepWarm": [{"slice": {}, "count": 1}]}`, false, false},
		{schedule(`"start": "0 8 * * 1-5", "end": "0 19 * * 1-5", "timeZone": "Europe/Berlin", "count": 4`), true, false},
		{schedule(`"start": "0 8 * * MON-FRI", "end": "0 19 * * 1-5", "count": 4`), true, false},
		{schedule(`"start": "0 8 * * 1-5", "end": "0 8 * * 1-5", "count": 4`), false, false},
		{schedule(`"start": "0 8 * *", "end": "0 19 * * 1-5", "count": 4`), false, false},
		{schedule(`"start": "@daily", "end": "0 19 * * 1-5", "count": 4`), false, false},
		{schedule(`"start": "0 8 * * 1-5", "end": "0 19 * * 1-5"`), false, false},
		{schedule(`"start": "0 25 * * 1-5", "end": "0 19 * * 1-5", "count": 4`), false, true},
		{schedule(`"start": "0 8 * * 1-5", "end": "0 19 * * 1-5", "timeZone": "Mars", "count": 4`), false, true},
		{`{"idle": {"suspendAfter": "2h", "deleteAfter": "24h"}}`, true, false},
		{`{"idle": {"suspendAfter": "1h30m"}}`, true, false},
		{`{"idle": {"deleteAfter": "24h"}}`, true, false},
		{`{"idle": {"suspendAfter": "5m"}}`, false, false},
		{`{"idle": {"suspendAfter": "soon"}}`, false, false},
		{`{"idle": {"suspendAfter": "24h", "deleteAfter": "2h"}}`, false, false},
		{`{"keepWarm": [` + strings.Repeat(`{"group": "a"},`, 32) + `{"group": "a"}]}`, false, false},
	} {
		spec := map[string]any{}
		if err := kubejson.Unmarshal([]byte(c.spec), &spec); err != nil {
			t.Fatal(err)
		}
		spec["rayCluster"] = "llm"
		_, fault := policytext.Read([]byte(c.spec), "rayCluster")
		if read := fault == nil; read != c.valid {
			t.Errorf("%s: read %v, want %v: %v", c.spec, read, c.valid, fault)
		}
		if takes, why := policies.takes(t, spec); takes != (c.valid || c.onlyRead) {
			t.Errorf("%s: the API server accepts it: %v, want %v: %s", c.spec, takes, c.valid || c.onlyRead, why)
		}
	}
	if takes, _ := policies.takes(t, map[string]any{}); takes {
		t.Error("a policy for no RayCluster is accepted")
	}
}
