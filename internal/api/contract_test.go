package api

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
)

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// operations calls visit with every operation of the spec.
func (s spec) operations(visit func(path, method string, operation object)) {
	paths := s.at(s.root, "paths")
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		for _, method := range methods {
			if operation, ok := paths[path].(object)[method]; ok {
				visit(path, method, s.at(operation))
			}
		}
	}
}

func TestEveryRouteIsInTheSpecAndTheReverse(t *testing.T) {
	var want []string
	loadSpec(t).operations(func(path, method string, _ object) {
		want = append(want, strings.ToUpper(method)+" "+regexp.MustCompile(`\{(\w+)\}`).ReplaceAllString(path, ":$1"))
	})
	var got []string
	for _, route := range newFixture(t).handler.(*gin.Engine).Routes() {
		got = append(got, route.Method+" "+route.Path)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-spec +server):\n%s", diff)
	}
}

func TestEveryOperationIsDescribedWithExamplesAndErrors(t *testing.T) {
	s := loadSpec(t)
	s.operations(func(path, method string, operation object) {
		for _, key := range []string{"operationId", "summary", "description", "tags"} {
			if operation[key] == nil {
				t.Errorf("%s %s has no %s", method, path, key)
			}
		}
		if s.at(operation, "responses")["default"] == nil {
			t.Errorf("%s %s does not say what errors look like", method, path)
		}
	})
}

func TestExamplesOfTheSpecMatchItsSchemas(t *testing.T) {
	s := loadSpec(t)
	checked := 0
	check := func(where string, content object) {
		schema := content["schema"]
		examples := []any{}
		if example, ok := content["example"]; ok {
			examples = append(examples, example)
		}
		if named, ok := content["examples"].(object); ok {
			for _, example := range named {
				examples = append(examples, example.(object)["value"])
			}
		}
		if len(examples) == 0 {
			t.Errorf("%s has no example", where)
		}
		for _, example := range examples {
			checked++
			for _, fault := range s.validator(schema).Validate(example).Errors {
				t.Errorf("%s: example: %v", where, fault)
			}
		}
	}
	s.operations(func(path, method string, operation object) {
		bodies := object{"responses": operation["responses"]}
		if body, ok := operation["requestBody"]; ok {
			bodies["request"] = object{"body": body}
		}
		for _, kind := range bodies {
			for status := range kind.(object) {
				content, _ := s.at(kind, status)["content"].(object)
				for media, what := range content {
					check(fmt.Sprintf("%s %s %s %s", method, path, status, media), s.at(what))
				}
			}
		}
	})
	if checked < 30 {
		t.Errorf("only %d examples were found", checked)
	}
}

func TestTheExampleOfAnInvalidRequestMatchesTheServer(t *testing.T) {
	s := loadSpec(t)
	want := s.at(s.root, "components", "responses", "Invalid", "content", "application/problem+json", "example")
	answer := newFixture(t).call(http.MethodPost, want["instance"].(string), `{"bundles": [{"GPU": 1}, {"GPU": -1}]}`)
	got := readAnswer[object](t, answer)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problem (-spec +server):\n%s", diff)
	}
}

func TestLimitsMatchTheSpec(t *testing.T) {
	s := loadSpec(t)
	properties := s.at(s.root, "components", "schemas", "RequestResources", "properties")
	got := map[string]any{
		"num_cpus": s.at(properties, "num_cpus")["maximum"], "bundles": s.at(properties, "bundles")["maxItems"],
		"selectors": s.at(properties, "bundle_label_selectors")["maxItems"],
		"resources": s.at(s.root, "components", "schemas", "Bundle")["maxProperties"],
		"name":      s.at(s.root, "components", "parameters", "name", "schema")["pattern"],
	}
	want := map[string]any{
		"num_cpus": float64(maxCPUs), "bundles": float64(maxBundles), "selectors": float64(maxBundles),
		"resources": float64(maxResources), "name": namePattern.String(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("limits (-code +spec):\n%s", diff)
	}
}

func TestAnswersMatchTheSpec(t *testing.T) {
	s, w := loadSpec(t), newFixture(t)
	w.fleet[otherKey] = View{Decision: &addon.Decision{Cluster: otherKey, Mode: "off"}} // even empty lists must be lists
	w.requests.kept[llm] = busy().Snapshot.Requests
	for path, schema := range map[string]string{
		"/v1/rayclusters":                        "ClusterList",
		"/v1/namespaces/ml/rayclusters":          "ClusterList",
		"/v1/namespaces/empty/rayclusters":       "ClusterList",
		llmPath:                                  "Cluster",
		"/v1/namespaces/ml/rayclusters/quiet":    "Cluster",
		llmPath + "/snapshot":                    "Snapshot",
		llmPath + "/request_resources":           "Requested",
		"/v1/namespaces/ml/rayclusters/unknown":  "Problem",
		"/v1/namespaces/ML/rayclusters/Bad_Name": "Problem",
		"/nowhere":                               "Problem",
	} {
		answer := w.call(http.MethodGet, path, "")
		if wantError := schema == "Problem"; (answer.Code >= 400) != wantError {
			t.Errorf("GET %s: status %d", path, answer.Code)
		}
		s.mustMatch(schema, answer.Body.Bytes())
	}
}
