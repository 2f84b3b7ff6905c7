package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"heliostat.dev/heliostat/internal/api/apiv1"
)

// parameter is the rule for the value of a query parameter. The zero value accepts any text.
type parameter struct {
	least, most int // characters; most is 0 if there is no maximum
	pattern     *regexp.Regexp
	values      []string
}

// expected says what a bad value should be; it returns "" for a good value.
func (p parameter) expected(value string) string {
	length := utf8.RuneCountInString(value)
	switch {
	case len(p.values) > 0 && !slices.Contains(p.values, value):
		return "one of " + strings.Join(p.values, ", ")
	case p.least == 1 && length == 0:
		return "text that is not empty"
	case length < p.least:
		return fmt.Sprintf("at least %d characters", p.least)
	case p.most > 0 && length > p.most:
		return fmt.Sprintf("at most %d characters", p.most)
	case p.pattern != nil && !p.pattern.MatchString(value):
		return "text that matches " + p.pattern.String()
	}
	return ""
}

// CheckQuery refuses query parameters that the operation does not have, has twice, or that break the contract: a
// misspelled filter would otherwise show too much.
func (o operation) CheckQuery(query string) error {
	given, err := url.ParseQuery(query)
	if err != nil {
		detail := "the query is not valid: " + shorten(err.Error())
		return &problem{Kind: kindInvalidRequest, Detail: detail}
	}
	known := "no query parameter"
	if len(o.query) > 0 {
		known = "one of the parameters " + strings.Join(slices.Sorted(maps.Keys(o.query)), ", ")
	}
	var faults []apiv1.FieldError
	for _, name := range slices.Sorted(maps.Keys(given)) {
		rule, exists := o.query[name]
		value := given.Get(name)
		switch {
		case !exists:
			faults = append(faults, apiv1.FieldError{Field: shorten(name), Expected: known})
		case len(given[name]) > 1:
			times := fmt.Sprintf("%d times", len(given[name]))
			faults = append(faults, apiv1.FieldError{Field: name, Value: times, Expected: "the parameter once"})
		case rule.expected(value) != "":
			fault := apiv1.FieldError{Field: name, Value: shorten(value), Expected: rule.expected(value)}
			faults = append(faults, fault)
		}
	}
	if len(faults) > 0 {
		return invalidFields(faults[:min(len(faults), maxFields)])
	}
	return nil
}

// declaredParameter is a parameter in the contract: the parameter itself, or a reference to a component.
type declaredParameter struct {
	Name   string `json:"name"`
	In     string `json:"in"`
	Ref    string `json:"$ref"`
	Schema schema `json:"schema"`
}

// schema is the schema of a parameter's text; lengths are in characters.
type schema struct {
	Ref       string   `json:"$ref"`
	MinLength int      `json:"minLength"`
	MaxLength int      `json:"maxLength"`
	Pattern   string   `json:"pattern"`
	Enum      []string `json:"enum"`
}

// components are the parts of the contract that parameters can refer to.
type components struct {
	Parameters map[string]declaredParameter `json:"parameters"`
	// Schemas are decoded when a parameter refers to them.
	Schemas map[string]json.RawMessage `json:"schemas"`
}

// readQuery reads the query parameters of an operation and of its path.
func readQuery(ofPath, operation []byte, parts components) (map[string]parameter, error) {
	var shared []declaredParameter
	var own struct {
		Parameters []declaredParameter `json:"parameters"`
	}
	if len(ofPath) > 0 {
		if err := json.Unmarshal(ofPath, &shared); err != nil {
			return nil, fmt.Errorf("parameters of the path: %w", err)
		}
	}
	if err := json.Unmarshal(operation, &own); err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	query := map[string]parameter{}
	for _, declared := range slices.Concat(shared, own.Parameters) {
		if declared.Ref != "" {
			component, known := parts.Parameters[strings.TrimPrefix(declared.Ref, "#/components/parameters/")]
			if !known {
				return nil, fmt.Errorf("there is no parameter %s", declared.Ref)
			}
			declared = component
		}
		if declared.In != "query" {
			continue
		}
		rule, err := declared.Schema.parameter(parts)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", declared.Name, err)
		}
		query[declared.Name] = rule
	}
	return query, nil
}

func (s schema) parameter(parts components) (parameter, error) {
	if s.Ref != "" {
		text, known := parts.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		if !known {
			return parameter{}, fmt.Errorf("there is no schema %s", s.Ref)
		}
		s = schema{}
		if err := json.Unmarshal(text, &s); err != nil {
			return parameter{}, err
		}
	}
	p := parameter{least: s.MinLength, most: s.MaxLength, values: s.Enum}
	if s.Pattern == "" {
		return p, nil
	}
	var err error
	p.pattern, err = regexp.Compile(s.Pattern)
	return p, err
}
