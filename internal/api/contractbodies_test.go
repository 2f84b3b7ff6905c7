package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestBodiesThatBreakTheContractAreRefused changes every value of a body in every way that it knows, and checks
// each against the contract.
func TestBodiesThatBreakTheContractAreRefused(t *testing.T) {
	s := loadSpec(t)
	for schema, call := range map[string]struct{ method, path, body string }{
		"Supposition": {http.MethodPost, llmPath + "/plan", `{"maxWorkers": 9, 
			"groups": [{"name": "new", "resources": {"CPU": 1}, "labels": {"a": "b"}, "minReplicas": 0, "maxReplicas": 4, "numOfHosts": 1, "idleTimeoutSeconds": 1,
				"priority": 0, "price": 1, "closed": "why", "slice": {"kind": "whole"}, "pools": [{"name": "p"}]}, {"name": "cpu", "remove": true}],
			"pendingRequests": [{"resources": {"CPU": 1}, "count": 1, "labelSelectors": [{"a": "b"}], "slice": {"memory": "1Gi", "isolation": "any"}}],
			"requestResources": [{"resources": {"CPU": 1}, "count": 1}],
			"pendingGangRequests": [{"id": "0a", "strategy": "PACK", "bundles": [{"CPU": 1}], "bundleLabelSelectors": [{"a": "b"}], "topologyLabel": "zone",
				"fallbackBundles": [[{"CPU": 1}]], "fallbackBundleLabelSelectors": [[{"a": "b"}]]}]}`},
		"RequestResources": {http.MethodPost, llmPath + "/request_resources", `{"num_cpus": 1, "bundles": [{"GPU": 1}], "bundle_label_selectors": [{"a": "b"}]}`},
		"RequestSpec": {http.MethodPut, llmPath + "/request_resources/train", `{"priority": 1, "allOrNothing": true, "leaseSeconds": 60,
			"bundles": [{"resources": {"GPU": 1}, "count": 1, "labelSelectors": [{"a": "b"}], "slice": {"memory": "1Gi", "computeFraction": 0.5, "isolation": "any"}}]}`},
		"CapacityPolicy": {http.MethodPut, llmPath + "/capacity_policy", `{"keepWarm": [{"group": "gpu", "count": 1, "schedules": [
			{"start": "0 8 * * 1-5", "end": "0 19 * * 1-5", "timeZone": "Europe/Berlin", "count": 4}]},
			{"resources": {"GPU": 1}, "labelSelectors": [{"a": "b"}], "slice": {"memory": "1Gi", "computeFraction": 0.5, "isolation": "any"}, "count": 2}],
			"idle": {"suspendAfter": "2h", "deleteAfter": "24h"}}`},
	} {
		t.Run(schema, func(t *testing.T) {
			var body any
			if err := json.Unmarshal([]byte(call.body), &body); err != nil {
				t.Fatal(err)
			}
			w := plannedFixture(t, func(c *Config) { c.Owned = newFakeOwned() })
			if answer := w.call(call.method, call.path, call.body); answer.Code >= http.StatusMultipleChoices {
				t.Fatalf("the body that is changed: %d, %s", answer.Code, answer.Body)
			}
			refused := 0
			changed(body, func() {
				text, err := json.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				var value any
				if err := json.Unmarshal(text, &value); err != nil {
					t.Fatal(err)
				}
				faults := s.check("", s.at(s.root, "components", "schemas", schema), value)
				if len(faults) == 0 {
					return
				}
				refused++
				if answer := w.call(call.method, call.path, string(text)); answer.Code < http.StatusBadRequest || answer.Code >= http.StatusInternalServerError {
					t.Errorf("%v\n%.400s\n%d, %.200s", faults[0], text, answer.Code, answer.Body)
				}
			})
			if refused < 50 {
				t.Errorf("the contract refuses %d of the bodies that were tried", refused)
			}
		})
	}
}

// odd are values that are wrong in nearly all fields.
func odd() []any {
	wide := object{}
	for i := range 150 {
		wide[fmt.Sprint("k", i)] = 1
	}
	return []any{nil, true, -1, 0, 0.5, 1e15, "", "no such", strings.Repeat("x", 5000), []any{}, []any{nil}, object{}, object{"unknown": 1}, wide}
}

// changed calls try with one change of value, for every place and every change, and undoes each.
func changed(value any, try func()) {
	switch value := value.(type) {
	case object:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			was := value[name]
			for _, v := range append(odd(), many(was)) {
				value[name] = v
				try()
			}
			delete(value, name)
			try()
			value[name] = was
			changed(was, try)
		}
		value["unknown"] = 1
		try()
		delete(value, "unknown")
	case []any:
		for i, was := range value {
			for _, v := range odd() {
				value[i] = v
				try()
			}
			value[i] = was
			changed(was, try)
		}
	}
}

// many returns a list with many copies of its first element, and any other value unchanged.
func many(value any) any {
	list, ok := value.([]any)
	if !ok {
		return value
	}
	return slices.Repeat(list[:1], 2000)
}
