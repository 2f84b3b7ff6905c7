package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/api"
	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
)

// rayClusters is the resource of all rights on RayClusters.
const rayClusters = "rayclusters.ray.io"

// operation is what one operation requires. The contract declares it as x-required-right; the server does not start if
// an operation lacks one.
type operation struct {
	ID string
	// Open means that everybody may call, authenticated or not.
	Open bool
	// Right is what a caller needs, without namespace and name: they come from the call.
	Right access.Right
	// PerNamespace means that the handler shows only the namespaces that the caller may list.
	PerNamespace bool
	// query holds the query parameters by name.
	query map[string]parameter
}

// operations are operations by method and route.
type operations map[string]operation

// Of returns the operation of a method and a route such as /v1/rayclusters/:name.
func (o operations) Of(method, route string) (operation, bool) {
	operation, known := o[method+" "+route]
	return operation, known
}

// allOperations returns the operations of the contract, which it reads once.
var allOperations = sync.OnceValues(func() (operations, error) { return readContract(api.Spec) })

// pathParameter is a path parameter as OpenAPI writes it. Routes have :name instead.
var pathParameter = regexp.MustCompile(`\{(\w+)\}`)

func readContract(spec []byte) (operations, error) {
	var document struct {
		Paths      map[string]map[string]json.RawMessage `json:"paths"`
		Components components                            `json:"components"`
	}
	if err := yaml.Unmarshal(spec, &document); err != nil {
		return nil, fmt.Errorf("reading the contract: %w", err)
	}
	operations := operations{}
	for path, members := range document.Paths {
		for method, text := range members {
			if method == "parameters" {
				continue
			}
			operation, err := readOperation(path, text)
			if err == nil {
				operation.query, err = readQuery(members["parameters"], text, document.Components)
			}
			if err != nil {
				return nil, fmt.Errorf("reading the contract: %s %s: %w", method, path, err)
			}
			operations[strings.ToUpper(method)+" "+pathParameter.ReplaceAllString(path, ":$1")] = operation
		}
	}
	return operations, nil
}

func readOperation(path string, text []byte) (operation, error) {
	var declared struct {
		ID       string                 `json:"operationId"`
		Security *[]map[string][]string `json:"security"`
		Right    json.RawMessage        `json:"x-required-right"`
	}
	if err := json.Unmarshal(text, &declared); err != nil {
		return operation{}, err
	}
	open := declared.Security != nil && len(*declared.Security) == 0
	if string(declared.Right) == `"none"` {
		if !open {
			return operation{}, errors.New(`"x-required-right: none" needs "security: []" too`)
		}
		return operation{ID: declared.ID, Open: true}, nil
	}
	if open {
		return operation{}, errors.New(`"security: []" needs "x-required-right: none" too`)
	}
	if len(declared.Right) == 0 {
		return operation{}, errors.New(
			"x-required-right is missing: every operation must declare the right that it needs, " +
				"for example {verb: get, resource: " + rayClusters + "}",
		)
	}
	var right requiredRight
	if err := json.Unmarshal(declared.Right, &right); err != nil {
		return operation{}, fmt.Errorf("x-required-right: %w", err)
	}
	return right.operation(declared.ID, path)
}

// requiredRight is x-required-right, unless it is the word none.
type requiredRight struct {
	Verb         string `json:"verb"`
	Resource     string `json:"resource"`
	Path         string `json:"path"`
	PerNamespace bool   `json:"perNamespace"`
}

// operation checks the right against the path of its operation.
func (r requiredRight) operation(id, path string) (operation, error) {
	named := strings.Contains(path, "{")
	switch {
	case r.Verb == "" || (r.Resource == "") == (r.Path == ""):
		return operation{}, errors.New("x-required-right needs a verb, and a resource or a path")
	case r.PerNamespace && (named || r.Verb != "list" || r.Resource != rayClusters):
		return operation{}, errors.New("x-required-right: perNamespace is for lists of RayClusters of all namespaces")
	case named && r.Resource != rayClusters:
		return operation{}, errors.New("x-required-right: the path of a RayCluster needs a right on " + rayClusters)
	}
	resource, group, _ := strings.Cut(r.Resource, ".")
	return operation{
		ID: id, PerNamespace: r.PerNamespace,
		Right: access.Right{Verb: r.Verb, Group: group, Resource: resource, Path: r.Path},
	}, nil
}

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
