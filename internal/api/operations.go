package api

import (
	"cmp"
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
	query map[string]schema
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
	var document map[string]any
	if err := yaml.Unmarshal(spec, &document); err != nil {
		return nil, fmt.Errorf("reading the contract: %w", err)
	}
	operations := operations{}
	paths, _ := document["paths"].(map[string]any)
	for path, item := range paths {
		members, _ := item.(map[string]any)
		for method, declared := range members {
			if method == "parameters" {
				continue
			}
			whole := map[string]any{"own": declared, "shared": members["parameters"]}
			text, err := json.Marshal(resolved(document, whole))
			var operation operation
			if err == nil {
				operation, err = readOperation(path, text)
			}
			if err != nil {
				return nil, fmt.Errorf("reading the contract: %s %s: %w", method, path, err)
			}
			operations[strings.ToUpper(method)+" "+pathParameter.ReplaceAllString(path, ":$1")] = operation
		}
	}
	return operations, nil
}

// resolved returns a part of a document with what its parameters and their schemas refer to.
func resolved(document map[string]any, part any) any {
	switch part := part.(type) {
	case []any:
		for i := range part {
			part[i] = resolved(document, part[i])
		}
	case map[string]any:
		if ref, refers := part["$ref"].(string); refers {
			var target any = document
			for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
				members, _ := target.(map[string]any)
				target = members[name]
			}
			return resolved(document, target)
		}
		for _, name := range []string{"own", "shared", "parameters", "schema"} {
			if below, has := part[name]; has {
				part[name] = resolved(document, below)
			}
		}
	}
	return part
}

func readOperation(path string, text []byte) (operation, error) {
	type parameters []struct {
		Name   string `json:"name"`
		In     string `json:"in"`
		Schema schema `json:"schema"`
	}
	var declared struct {
		Shared parameters `json:"shared"`
		Own    struct {
			ID         string                 `json:"operationId"`
			Security   *[]map[string][]string `json:"security"`
			Right      json.RawMessage        `json:"x-required-right"`
			Parameters parameters             `json:"parameters"`
		} `json:"own"`
	}
	if err := json.Unmarshal(text, &declared); err != nil {
		return operation{}, err
	}
	own := &declared.Own
	open := own.Security != nil && len(*own.Security) == 0
	read := operation{ID: own.ID, Open: open, query: map[string]schema{}}
	switch none := string(own.Right) == `"none"`; {
	case none && !open:
		return read, errors.New(`"x-required-right: none" needs "security: []" too`)
	case open && !none:
		return read, errors.New(`"security: []" needs "x-required-right: none" too`)
	case len(own.Right) == 0:
		return read, errors.New("x-required-right is missing: every operation must declare the right that it needs, " +
			"for example {verb: get, resource: " + rayClusters + "}")
	case !none:
		var right requiredRight
		err := json.Unmarshal(own.Right, &right)
		if err != nil {
			return read, fmt.Errorf("x-required-right: %w", err)
		}
		if read.Right, err = right.on(path); err != nil {
			return read, err
		}
		read.PerNamespace = right.PerNamespace
	}
	for _, p := range slices.Concat(declared.Shared, own.Parameters) {
		_, err := regexp.Compile(p.Schema.Pattern)
		switch {
		case p.Name == "" || err != nil:
			return read, fmt.Errorf("parameter %q: %w", p.Name, cmp.Or(err, errors.New("it is not declared")))
		case p.In == "query":
			read.query[p.Name] = p.Schema
		}
	}
	return read, nil
}

// requiredRight is x-required-right, unless it is the word none.
type requiredRight struct {
	Verb         string `json:"verb"`
	Resource     string `json:"resource"`
	Path         string `json:"path"`
	PerNamespace bool   `json:"perNamespace"`
}

// on returns the right on the path of its operation.
func (r requiredRight) on(path string) (access.Right, error) {
	named := strings.Contains(path, "{")
	switch {
	case r.Verb == "" || (r.Resource == "") == (r.Path == ""):
		return access.Right{}, errors.New("x-required-right needs a verb, and a resource or a path")
	case r.PerNamespace && (named || r.Verb != "list" || r.Resource != rayClusters):
		return access.Right{},
			errors.New("x-required-right: perNamespace is for lists of RayClusters of all namespaces")
	case named && r.Resource != rayClusters:
		return access.Right{}, errors.New("x-required-right: the path of a RayCluster needs a right on " + rayClusters)
	}
	resource, group, _ := strings.Cut(r.Resource, ".")
	return access.Right{Verb: r.Verb, Group: group, Resource: resource, Path: r.Path}, nil
}

// schema is the rule for the text of a query parameter; lengths are in characters. The zero value accepts any text.
type schema struct {
	MinLength int      `json:"minLength"`
	MaxLength int      `json:"maxLength"`
	Pattern   string   `json:"pattern"`
	Enum      []string `json:"enum"`
}

// expected says what a bad value should be; it returns "" for a good value.
func (s schema) expected(value string) string {
	length := utf8.RuneCountInString(value)
	switch {
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, value):
		return "one of " + strings.Join(s.Enum, ", ")
	case s.MinLength == 1 && length == 0:
		return "text that is not empty"
	case length < s.MinLength:
		return fmt.Sprintf("at least %d characters", s.MinLength)
	case s.MaxLength > 0 && length > s.MaxLength:
		return fmt.Sprintf("at most %d characters", s.MaxLength)
	case s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(value): // it was compiled before
		return "text that matches " + s.Pattern
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
