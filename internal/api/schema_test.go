package api

import (
	"encoding/json"
	"strings"
	"testing"

	openapi "k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/api"
)

// object is a JSON object of the spec.
type object = map[string]any

// spec is api/openapi.yaml as generic JSON, because generated types would hide bugs of the generator.
type spec struct {
	t    testing.TB
	root object
}

func loadSpec(t testing.TB) spec {
	t.Helper()
	s := spec{t: t}
	must(t, yaml.Unmarshal(api.Spec, &s.root))
	return s
}

// at follows a path of keys and each $ref on it.
func (s spec) at(from any, keys ...string) object {
	s.t.Helper()
	for _, key := range append([]string{""}, keys...) {
		here, ok := from.(object)
		if !ok {
			s.t.Fatalf("no object on the way to %v", keys)
		}
		if key != "" {
			from, ok = here[key]
			if !ok {
				s.t.Fatalf("%v: no %q", keys, key)
			}
		}
		for {
			here, ok = from.(object)
			ref, isRef := here["$ref"].(string)
			if !ok || !isRef {
				break
			}
			from = any(s.at(s.root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...))
		}
	}
	found, ok := from.(object)
	if !ok {
		s.t.Fatalf("%v is not an object", keys)
	}
	return found
}

// validator returns what checks values against a schema of the spec.
func (s spec) validator(schema any) *validate.SchemaValidator {
	s.t.Helper()
	text, err := json.Marshal(s.resolved(schema))
	if err != nil {
		s.t.Fatal(err)
	}
	var known openapi.Schema
	if err := json.Unmarshal(text, &known); err != nil {
		s.t.Fatal(err)
	}
	return validate.NewSchemaValidator(&known, nil, "", strfmt.Default)
}

// resolved returns a part of the spec with what each $ref in it stands for, because the validator follows none.
func (s spec) resolved(part any) any {
	s.t.Helper()
	switch part := part.(type) {
	case object:
		if part["$ref"] != nil {
			return s.resolved(s.at(part))
		}
		resolved := object{}
		for key, inner := range part {
			resolved[key] = s.resolved(inner)
		}
		return resolved
	case []any:
		resolved := make([]any, len(part))
		for i, inner := range part {
			resolved[i] = s.resolved(inner)
		}
		return resolved
	}
	return part
}

// mustMatch fails unless text, a JSON document, matches the schema.
func (s spec) mustMatch(schema string, text []byte) {
	s.t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
	for _, fault := range s.validator(s.at(s.root, "components", "schemas", schema)).Validate(value).Errors {
		s.t.Errorf("%s: %v", schema, fault)
	}
}
