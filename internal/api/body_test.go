package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAProblemNamesTheBadFields(t *testing.T) {
	const expression = "an expression: v, !v, in(a,b) or !in(a,b)"
	const wholeNumber = "a whole number from 0 to 1000000"
	const notNegative = "0, or a number from 0.0001 to 109951162777600"
	bundles := func(n int) string { return "[" + strings.TrimSuffix(strings.Repeat("{},", n), ",") + "]" }
	tests := map[string]struct {
		body string
		want []apiv1.FieldError
	}{
		"unknown field":             {`{"num_gpus":1}`, []apiv1.FieldError{{Expected: "num_cpus", Field: "num_gpus", Value: ""}}},
		"field in other case":       {`{"Bundles":[]}`, []apiv1.FieldError{{Expected: "bundles", Field: "Bundles", Value: ""}}},
		"count belongs to no face":  {`{"bundles":[],"count":2}`, []apiv1.FieldError{{Expected: "one of num_cpus, bundles, bundle_label_selectors", Field: "count", Value: ""}}},
		"field written twice":       {`{"num_cpus":1,"num_cpus":2}`, []apiv1.FieldError{{Expected: "a field that appears once", Field: "num_cpus", Value: ""}}},
		"resource written twice":    {`{"bundles":[{"GPU":1,"GPU":[2]}]}`, []apiv1.FieldError{{Expected: "a field that appears once", Field: "bundles[0].GPU", Value: ""}}},
		"not an object":             {`7`, []apiv1.FieldError{{Expected: "an object with num_cpus, bundles and bundle_label_selectors", Field: "", Value: "7"}}},
		"null":                      {`null`, []apiv1.FieldError{{Expected: "an object with num_cpus, bundles and bundle_label_selectors", Field: "", Value: "null"}}},
		"cpus as text":              {`{"num_cpus":"4"}`, []apiv1.FieldError{{Expected: wholeNumber, Field: "num_cpus", Value: `"4"`}}},
		"negative cpus":             {`{"num_cpus":-1}`, []apiv1.FieldError{{Expected: wholeNumber, Field: "num_cpus", Value: "-1"}}},
		"broken cpus":               {`{"num_cpus":1.5}`, []apiv1.FieldError{{Expected: wholeNumber, Field: "num_cpus", Value: "1.5"}}},
		"too many cpus":             {`{"num_cpus":1000001}`, []apiv1.FieldError{{Expected: wholeNumber, Field: "num_cpus", Value: "1000001"}}},
		"too many cpus and bundles": {`{"num_cpus":1000000,"bundles":[{"CPU":1}]}`, []apiv1.FieldError{{Expected: "at most 1000000 together with the bundles", Field: "num_cpus", Value: "1000001 with the bundles"}}},
		"enormous cpus":             {`{"num_cpus":1e999999999}`, []apiv1.FieldError{{Expected: wholeNumber, Field: "num_cpus", Value: "1e999999999"}}},
		"bundles as object":         {`{"bundles":{"GPU":1}}`, []apiv1.FieldError{{Expected: "a list […]", Field: "bundles", Value: `{"GPU":1}`}}},
		"bundle as number":          {`{"bundles":[{"GPU":1},3]}`, []apiv1.FieldError{{Expected: "an object {…}", Field: "bundles[1]", Value: "3"}}},
		"bundle as null":            {`[null]`, []apiv1.FieldError{{Expected: "an object {…}", Field: "bundles[0]", Value: "null"}}},
		"negative amount":           {`{"bundles":[{"CPU":1},{"GPU":-1}]}`, []apiv1.FieldError{{Expected: notNegative, Field: "bundles[1].GPU", Value: "-1"}}},
		"tiny negative amount":      {`{"bundles":[{"GPU":-0.00001}]}`, []apiv1.FieldError{{Expected: notNegative, Field: "bundles[0].GPU", Value: "-0.00001"}}},
		"amount as text":            {`{"bundles":[{"GPU":"1"}]}`, []apiv1.FieldError{{Expected: notNegative, Field: "bundles[0].GPU", Value: `"1"`}}},
		"amount as truth":           {`{"bundles":[{"GPU":true}]}`, []apiv1.FieldError{{Expected: notNegative, Field: "bundles[0].GPU", Value: "true"}}},
		"amount as null":            {`{"bundles":[{"GPU":null}]}`, []apiv1.FieldError{{Expected: notNegative, Field: "bundles[0].GPU", Value: "null"}}},
		"amount as array":           {`{"bundles":[{"GPU":[1,{"a":2}]}]}`, []apiv1.FieldError{{Expected: notNegative, Field: "bundles[0].GPU", Value: `[1,{"a":2}]`}}},
		"amount too small for Ray":  {`[{"GPU":0.00004}]`, []apiv1.FieldError{{Expected: notNegative, Field: "bundles[0].GPU", Value: "0.00004"}}},
		"amount too large for Ray":  {`[{"memory":1e15}]`, []apiv1.FieldError{{Expected: notNegative, Field: "bundles[0].memory", Value: "1e15"}}},
		"empty resource name":       {`[{"":1}]`, []apiv1.FieldError{{Expected: "a resource name: 1 to 256 printable characters, no space around it", Field: "bundles[0]", Value: `""`}}},
		"resource name with space":  {`[{" GPU":1}]`, []apiv1.FieldError{{Expected: "a resource name: 1 to 256 printable characters, no space around it", Field: "bundles[0]", Value: `" GPU"`}}},
		"resource name with NUL":    {`[{"G\u0000":1}]`, []apiv1.FieldError{{Expected: "a resource name: 1 to 256 printable characters, no space around it", Field: "bundles[0]", Value: `"G\x00"`}}},
		"too many bundles":          {`{"bundles":` + bundles(maxBundles+1) + `}`, []apiv1.FieldError{{Expected: "at most 10000 elements", Field: "bundles", Value: "10001 elements"}}},
		"selectors without bundles": {`{"num_cpus":1,"bundle_label_selectors":[{"a":"b"}]}`, []apiv1.FieldError{{Expected: "one selector for each of the 0 bundles", Field: "bundle_label_selectors", Value: "1 selectors"}}},
		"selectors not parallel":    {`{"bundle_label_selectors":[{"a":"b"}],"bundles":[{"GPU":1},{"GPU":1}]}`, []apiv1.FieldError{{Expected: "one selector for each of the 2 bundles", Field: "bundle_label_selectors", Value: "1 selectors"}}},
		"selector as text":          {`{"bundles":[{"GPU":1}],"bundle_label_selectors":["a=b"]}`, []apiv1.FieldError{{Expected: "an object {…}", Field: "bundle_label_selectors[0]", Value: `"a=b"`}}},
		"expression as number":      {`{"bundles":[{"GPU":1}],"bundle_label_selectors":[{"a":1}]}`, []apiv1.FieldError{{Expected: expression, Field: "bundle_label_selectors[0].a", Value: "1"}}},
		"expression without end":    {`{"bundles":[{"GPU":1}],"bundle_label_selectors":[{"a":"in(b"}]}`, []apiv1.FieldError{{Expected: expression, Field: "bundle_label_selectors[0].a", Value: `"in(b"`}}},
		"empty label key":           {`{"bundles":[{"GPU":1}],"bundle_label_selectors":[{"":"b"}]}`, []apiv1.FieldError{{Expected: "a label key: 1 to 256 printable characters, no space around it", Field: "bundle_label_selectors[0]", Value: `""`}}},
		"two bad fields":            {`{"num_cpus":-1,"bundles":[{"GPU":-2}]}`, []apiv1.FieldError{{Expected: wholeNumber, Field: "num_cpus", Value: "-1"}, {Expected: notNegative, Field: "bundles[0].GPU", Value: "-2"}}},
		"something after the value": {`{} {}`, []apiv1.FieldError{{Expected: "nothing after the JSON value", Field: "", Value: "{}"}}},
		"not UTF-8":                 {"[{\"G\xff\":1}]", []apiv1.FieldError{{Expected: "JSON in UTF-8", Field: "", Value: "bytes that are not UTF-8"}}},
	}
	s := loadSpec(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			answer := w.call(http.MethodPost, llmPath+"/request_resources", test.body)
			problem := readAnswer[apiv1.Problem](t, answer)
			if answer.Code != http.StatusBadRequest || answer.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("status %d, %s", answer.Code, answer.Header().Get("Content-Type"))
			}
			if diff := cmp.Diff(test.want, problem.Errors); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if problem.Detail == "" || problem.Instance != llmPath+"/request_resources" || problem.Status != 400 {
				t.Errorf("problem %+v", problem)
			}
			s.mustMatch("Problem", answer.Body.Bytes())
			if w.requests.sets != 0 {
				t.Error("a bad request was kept")
			}
		})
	}
}

func TestAProblemHasThePositionOfASyntaxError(t *testing.T) {
	for _, body := range []string{
		`{`, `{"num_cpus":`, `{"num_cpus":NaN}`, `{"bundles":[{"GPU":Infinity}]}`, `{"num_cpus" 4}`, `{num_cpus:4}`, `[`, `[{]`,
		`nonsense`, `{"bundles":[{"GPU":1},]}`, `{"a":` + strings.Repeat(`[`, 100_000),
	} {
		answer := newFixture(t).call(http.MethodPost, llmPath+"/request_resources", body)
		problem := readAnswer[apiv1.Problem](t, answer)
		if answer.Code != http.StatusBadRequest || len(problem.Errors) == 0 {
			t.Fatalf("%.40q: %d %+v", body, answer.Code, problem)
		}
		last := problem.Errors[len(problem.Errors)-1]
		if !strings.HasPrefix(last.Expected, "JSON, at byte ") {
			t.Errorf("%.40q: %+v", body, last)
		}
	}
}

func TestAProblemNamesAtMost20Fields(t *testing.T) {
	body := "[" + strings.Repeat(`{"GPU":-1},`, 5000) + `{"GPU":-1}]`
	problem := readAnswer[apiv1.Problem](t, newFixture(t).call(http.MethodPost, llmPath+"/request_resources", body))
	if len(problem.Errors) != 20 {
		t.Errorf("%d errors, want 20", len(problem.Errors))
	}
}

func TestCallsThatFailBeforeDecoding(t *testing.T) {
	post := func(contentType, body string) *httptest.ResponseRecorder {
		request := httptest.NewRequest(http.MethodPost, llmPath+"/request_resources", strings.NewReader(body))
		request.Host = "localhost"
		request.Header.Set("Content-Type", contentType)
		return newFixture(t).send(request)
	}
	w := newFixture(t)
	tests := map[string]struct {
		answer *httptest.ResponseRecorder
		status int
		slug   string
	}{
		"text":                   {post("text/plain", `{}`), 415, "media-type"},
		"no type":                {post("", `{}`), 415, "media-type"},
		"form":                   {post("application/x-www-form-urlencoded", ``), 415, "media-type"},
		"broken type":            {post("application/json; charset", `{}`), 415, "media-type"},
		"body over the limit":    {post("application/json", strings.Repeat(" ", maxBody+1)), 413, "too-large"},
		"unknown cluster":        {w.call("POST", "/v1/namespaces/ml/rayclusters/other/request_resources", `{}`), 404, "unknown-cluster"},
		"unknown cluster, GET":   {w.call("GET", "/v1/namespaces/ml/rayclusters/other/request_resources", ""), 404, "unknown-cluster"},
		"unknown cluster, clear": {w.call("DELETE", "/v1/namespaces/ml/rayclusters/other/request_resources", ""), 404, "unknown-cluster"},
		"unknown path":           {w.call("GET", "/v1/raycluster", ""), 404, "unknown-path"},
		"trailing slash":         {w.call("GET", "/v1/rayclusters/", ""), 404, "unknown-path"},
		"unknown method":         {w.call("PATCH", llmPath+"/request_resources", `{}`), 405, "unknown-method"},
		"name of a path":         {w.call("GET", "/v1/namespaces/ml/rayclusters/..%2fllm", ""), 404, "unknown-path"},
		"dots as name":           {w.call("POST", "/v1/namespaces/ml/rayclusters/../request_resources", `{}`), 400, "invalid-request"},
		"capitals in name":       {w.call("GET", "/v1/namespaces/ml/rayclusters/LLM", ""), 400, "invalid-request"},
		"dot in namespace":       {w.call("GET", "/v1/namespaces/m.l/rayclusters", ""), 400, "invalid-request"},
		"long name":              {w.call("GET", "/v1/namespaces/ml/rayclusters/"+strings.Repeat("a", 254), ""), 400, "invalid-request"},
	}
	for name, test := range tests {
		problem := readAnswer[apiv1.Problem](t, test.answer)
		if test.answer.Code != test.status || problem.Status != test.status || problem.Type != problemBase+test.slug {
			t.Errorf("%s: status %d %+v, want %d %s", name, test.answer.Code, problem, test.status, test.slug)
		}
	}
	if got := post("application/json; charset=utf-8", `{}`); got.Code != http.StatusOK {
		t.Errorf("JSON with a charset: %d", got.Code)
	}
}

func readAnswer[T any](t *testing.T, answer *httptest.ResponseRecorder) T {
	t.Helper()
	var value T
	if err := json.Unmarshal(answer.Body.Bytes(), &value); err != nil {
		t.Fatalf("%v in %q", err, answer.Body)
	}
	return value
}

func TestBundlesMayHaveSlices(t *testing.T) {
	gpu := raydemand.Bundle{"GPU": raydemand.One}
	tenGi := &raydemand.SliceRequirement{Memory: 10 << 30}
	for body, want := range map[string][]raydemand.Request{
		`[{"GPU": 1, "slice": {"memory": "10Gi"}}, {"slice": {"memory": 10737418240}}, {"GPU": 1}]`: {
			{Bundle: gpu, Count: 2, Slice: tenGi}, {Bundle: gpu, Count: 1},
		},
		`[{"resources": {"CPU": 2}, "slice": {"computeFraction": 0.14, "isolation": "hardware"}, "count": 3}]`: {
			{Bundle: raydemand.Bundle{"CPU": raydemand.Whole(2), "GPU": raydemand.One}, Count: 3, Slice: &raydemand.SliceRequirement{ComputeFraction: 0.14, Isolation: "hardware"}},
		},
		`[{"resources": {"GPU": 0.5}, "count": 2}]`:            {{Bundle: raydemand.Bundle{"GPU": raydemand.One / 2}, Count: 2}},
		`[{"resources": 1, "slice": 2, "count": 3, "GPU": 1}]`: {{Bundle: raydemand.Bundle{"resources": raydemand.One, "slice": raydemand.Whole(2), "count": raydemand.Whole(3), "GPU": raydemand.One}, Count: 1}},
	} {
		read, err := DecodeRequest([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if diff := cmp.Diff(want, read.Merged()); diff != "" {
			t.Errorf("%s: -want +got\n%s", body, diff)
		}
		text, err := json.Marshal(read)
		must(t, err)
		if again, err := DecodeRequest(text); err != nil || cmp.Diff(want, again.Merged()) != "" {
			t.Errorf("written as %s, read again as %+v (%v)", text, again, err)
		}
	}
}

func TestABadSliceNamesTheField(t *testing.T) {
	for body, want := range map[string]apiv1.FieldError{
		`{"bundles": [{"GPU": 1}, {"GPU": 1, "slice": {"memory": "10GB"}}]}`: {
			Field: "bundles[1].slice.memory", Value: `"10GB"`, Expected: raydemand.SliceMemoryWant + "; write 10G without B"},
		`[{"slice": {"memory": "-1Gi"}}]`:                           {Field: "bundles[0].slice.memory", Value: `"-1Gi"`, Expected: raydemand.SliceMemoryWant},
		`[{"slice": {"computeFraction": 105}}]`:                     {Field: "bundles[0].slice.computeFraction", Value: "105", Expected: raydemand.SliceComputeWant},
		`[{"slice": {"isolation": "none"}}]`:                        {Field: "bundles[0].slice.isolation", Value: `"none"`, Expected: raydemand.SliceIsolationWant},
		`[{"slice": {}}]`:                                           {Field: "bundles[0].slice", Value: "{}", Expected: raydemand.SliceWant},
		`[{"slice": "10Gi"}]`:                                       {Field: "bundles[0].slice", Value: `"10Gi"`, Expected: "0, or a number from 0.0001 to 109951162777600"},
		`[{"slice": {"memory": "1Gi", "memory": "2Gi"}}]`:           {Field: "bundles[0].slice.memory", Expected: "a field that appears once"},
		`[{"resources": {"GPU": -1}, "slice": {"memory": "1Gi"}}]`:  {Field: "bundles[0].resources.GPU", Value: "-1", Expected: "0, or a number from 0.0001 to 109951162777600"},
		`[{"resources": {"GPU": 1}, "count": 0}]`:                   {Field: "bundles[0].count", Value: "0", Expected: "a whole number from 1 to 1000000"},
		`[{"resources": {"GPU": 1}, "count": 1000000}, {"GPU": 1}]`: {Field: "num_cpus", Value: "1000001 with the bundles", Expected: "at most 1000000 together with the bundles"},
	} {
		_, err := DecodeRequest([]byte(body))
		var refused *problem
		if !errors.As(err, &refused) || len(refused.Fields) != 1 {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if diff := cmp.Diff(want, refused.Fields[0]); diff != "" {
			t.Errorf("%s: -want +got\n%s", body, diff)
		}
	}
}

func FuzzDecodeRequest(f *testing.F) {
	for _, seed := range []string{
		``, `[]`, `{}`, `{"num_cpus":4}`, `{"bundles":[{"GPU":1},{"CPU":0.5,"memory":1e9}]}`, `{"bundles":null,"num_cpus":null}`,
		`{"bundles":[{"GPU":1}],"bundle_label_selectors":[{"zone":"!in(a,b)"}]}`, `[{"GPU":1e-5}]`, `{"num_cpus":1e99}`,
		`[{"GPU":1,"slice":{"memory":"10Gi"}},{"resources":{"CPU":2},"slice":{"computeFraction":0.5,"isolation":"any"},"count":3}]`,
		`[{"slice":2,"resources":1,"count":4}]`, `[{"slice":{"memory":"10GB"}}]`, `{"a":[[[{}]]]}`, `{"bundles":[{"GPU":-0}]}`, "[{\"\xff\":1}]", `{"bundles":[{"":1}]} x`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		read, err := DecodeRequest(body)
		var known *problem
		if err != nil {
			if !errors.As(err, &known) || known.Kind != kindInvalidRequest || len(known.Fields) == 0 || len(known.Fields) > maxFields+1 {
				t.Fatalf("%q: error %#v is not a bounded problem", body, err)
			}
			return
		}
		merged := read.Merged()
		for _, request := range merged {
			if request.Count < 1 || request.Bundle.IsZero() || len(request.Selectors) > 1 {
				t.Fatalf("%q: merged %+v", body, request)
			}
			for name, amount := range request.Bundle {
				if amount <= 0 || name == "" {
					t.Fatalf("%q: amount %v of %q", body, amount, name)
				}
			}
		}
		text, err := json.Marshal(read)
		if err != nil {
			t.Fatalf("%q: encoding what was read: %v", body, err)
		}
		again, err := DecodeRequest(text)
		if err != nil {
			t.Fatalf("%q: what was read is written as %s, which is refused: %v", body, text, err)
		}
		if diff := cmp.Diff(merged, again.Merged()); diff != "" {
			t.Fatalf("%q changes when it is written and read again:\n%s", body, diff)
		}
	})
}

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
	} {
		t.Run(schema, func(t *testing.T) {
			var body any
			must(t, json.Unmarshal([]byte(call.body), &body))
			w := plannedFixture(t, func(c *Config) { c.Owned = newFakeOwned() })
			if answer := w.call(call.method, call.path, call.body); answer.Code >= http.StatusMultipleChoices {
				t.Fatalf("the body that is changed: %d, %s", answer.Code, answer.Body)
			}
			refused, contract := 0, s.validator(s.at(s.root, "components", "schemas", schema))
			changed(body, func() {
				text, err := json.Marshal(body)
				must(t, err)
				var value any
				must(t, json.Unmarshal(text, &value))
				faults := contract.Validate(value).Errors
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
