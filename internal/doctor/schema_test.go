package doctor_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var updateSchemas = flag.Bool("update-schemas", false, "write kuberay.json.gz")

// The schemas are the parts of spec without descriptions. Of the rules that are expressions, those of one value in a
// list become an enum; the operator's own functions have the others.
func TestTheSchemasAreThoseOfKubeRay(t *testing.T) {
	const file = "kuberay.json.gz"
	files, err := filepath.Glob(filepath.Join(kubeRaySamples(t), "../crd/bases/*.yaml"))
	if err != nil || len(files) != 4 {
		t.Fatal(files, err)
	}
	all := map[string]any{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		must(t, err)
		var crd struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct {
						OpenAPI struct{ Properties map[string]map[string]any } `json:"openAPIV3Schema"`
					}
				}
			}
		}
		must(t, yaml.Unmarshal(text, &crd))
		for _, version := range crd.Spec.Versions {
			spec := version.Schema.OpenAPI.Properties["spec"]
			reduce(t, spec)
			all[crd.Spec.Names.Kind+"/"+version.Name] = spec
		}
	}
	want, err := json.Marshal(all)
	must(t, err)
	if *updateSchemas {
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		if _, err := writer.Write(want); err != nil || writer.Close() != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, packed.Bytes(), 0o644); err != nil { //nolint:gosec // for everybody
			t.Fatal(err)
		}
	}
	packed, err := os.Open(file)
	must(t, err)
	defer packed.Close()
	reader, err := gzip.NewReader(packed)
	must(t, err)
	got, err := io.ReadAll(reader)
	if err != nil || !bytes.Equal(want, got) {
		t.Errorf("go test ./internal/doctor -run Schemas -update-schemas; %v", err)
	}
}

// reduce removes descriptions, and turns rules about lists of values into enums.
func reduce(t *testing.T, schema map[string]any) {
	t.Helper()
	delete(schema, "description")
	rules, _ := schema["x-kubernetes-validations"].([]any)
	delete(schema, "x-kubernetes-validations")
	for _, rule := range rules {
		expression := rule.(map[string]any)["rule"].(string)
		if list, isList := strings.CutPrefix(expression, "self in "); isList {
			var values []any
			must(t, json.Unmarshal([]byte(strings.ReplaceAll(list, "'", `"`)), &values))
			schema["enum"] = values
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if inner, ok := schema[key].(map[string]any); ok {
			reduce(t, inner)
		}
	}
	properties, _ := schema["properties"].(map[string]any)
	for _, property := range properties {
		reduce(t, property.(map[string]any))
	}
}
