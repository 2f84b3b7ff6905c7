package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/api"
	"heliostat.dev/heliostat/internal/access"
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
