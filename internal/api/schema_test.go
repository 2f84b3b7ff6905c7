package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

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
	if err := yaml.Unmarshal(api.Spec, &s.root); err != nil {
		t.Fatal(err)
	}
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

// check lists the differences between value and schema. It knows the keywords in api/openapi.yaml and refuses others.
func (s spec) check(path string, schema any, value any) []string {
	rules := s.at(schema)
	if value == nil && rules["nullable"] == true {
		return nil
	}
	var faults []string
	for _, keyword := range slices.Sorted(maps.Keys(rules)) {
		faults = append(faults, s.checkKeyword(path, keyword, rules, value)...)
	}
	return faults
}

func (s spec) checkKeyword(path, keyword string, rules object, value any) []string {
	rule := rules[keyword]
	fault := func(format string, args ...any) []string {
		return []string{path + ": " + fmt.Sprintf(format, args...)}
	}
	switch keyword {
	case "description", "example", "format", "nullable", "properties", "x-go-type", "x-go-type-import", "x-go-type-name",
		"x-go-type-skip-optional-pointer", "x-go-name", "x-enum-varnames":
		return s.checkProperties(path, keyword, rules, value)
	case "type":
		if got := typeOf(value); got != rule && (got != "integer" || rule != "number") {
			return fault("is %s, want %v", got, rule)
		}
	case "enum":
		if !slices.Contains(rule.([]any), value) {
			return fault("%v is not one of %v", value, rule)
		}
	case "required":
		members, _ := value.(object)
		for _, name := range rule.([]any) {
			if _, ok := members[name.(string)]; !ok {
				return fault("lacks %v", name)
			}
		}
	case "additionalProperties":
		return s.checkAdditional(path, rules, value)
	case "items":
		var faults []string
		items, _ := value.([]any)
		for i, item := range items {
			faults = append(faults, s.check(fmt.Sprintf("%s[%d]", path, i), rule, item)...)
		}
		return faults
	case "allOf":
		var faults []string
		for _, part := range rule.([]any) {
			faults = append(faults, s.check(path, part, value)...)
		}
		return faults
	case "oneOf":
		matches := 0
		for _, part := range rule.([]any) {
			if len(s.check(path, part, value)) == 0 {
				matches++
			}
		}
		if matches != 1 {
			return fault("matches %d of oneOf", matches)
		}
	case "minimum", "maximum":
		number, ok := value.(float64)
		if ok && (keyword == "minimum" && number < rule.(float64) || keyword == "maximum" && number > rule.(float64)) {
			return fault("%v is beyond %s %v", number, keyword, rule)
		}
	case "default": // used if the value is absent
	case "minItems":
		if items, ok := value.([]any); ok && float64(len(items)) < rule.(float64) {
			return fault("has %d items, want at least %v", len(items), rule)
		}
	case "maxItems":
		if items, ok := value.([]any); ok && float64(len(items)) > rule.(float64) {
			return fault("has %d items, want at most %v", len(items), rule)
		}
	case "maxProperties":
		if members, ok := value.(object); ok && float64(len(members)) > rule.(float64) {
			return fault("has %d members, want at most %v", len(members), rule)
		}
	case "pattern":
		if text, ok := value.(string); ok && !regexp.MustCompile(rule.(string)).MatchString(text) {
			return fault("%q does not match %v", text, rule)
		}
	case "minLength", "maxLength":
		text, ok := value.(string)
		if length := float64(len(text)); ok && (keyword == "minLength" && length < rule.(float64) || keyword == "maxLength" && length > rule.(float64)) {
			return fault("%q is beyond %s %v", text, keyword, rule)
		}
	default:
		return fault("the test does not know the keyword %q", keyword)
	}
	return nil
}

func (s spec) checkProperties(path, keyword string, rules object, value any) []string {
	members, ok := value.(object)
	if keyword != "properties" || !ok {
		return nil
	}
	var faults []string
	for name, schema := range rules["properties"].(object) {
		if member, ok := members[name]; ok {
			faults = append(faults, s.check(path+"."+name, schema, member)...)
		}
	}
	return faults
}

func (s spec) checkAdditional(path string, rules object, value any) []string {
	known, _ := rules["properties"].(object)
	members, _ := value.(object)
	var faults []string
	for name, member := range members {
		_, isKnown := known[name]
		switch rule := rules["additionalProperties"].(type) {
		case bool:
			if !isKnown && !rule {
				faults = append(faults, path+": unknown member "+name)
			}
		default:
			if !isKnown {
				faults = append(faults, s.check(path+"."+name, rule, member)...)
			}
		}
	}
	return faults
}

func typeOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// mustMatch fails unless text, a JSON document, matches the schema.
func (s spec) mustMatch(schema string, text []byte) {
	s.t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		s.t.Fatalf("%v in %s", err, text)
	}
	for _, fault := range s.check("", s.at(s.root, "components", "schemas", schema), value) {
		s.t.Errorf("%s: %s", schema, fault)
	}
}
