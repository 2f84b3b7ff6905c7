package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/api"
	"heliostat.dev/heliostat/internal/access"
)

// rayClusters is the resource that all rights on RayClusters are about.
const rayClusters = "rayclusters.ray.io"

// rule is what one operation needs. The contract says it with each operation, as x-required-right; an operation that does
// not say it keeps the server from being made.
type rule struct {
	operation string
	// open is for everybody, known or not.
	open bool
	// right is what a caller needs, without namespace and name: those are of the call.
	right access.Right
	// perNamespace leaves it to the handler to show only what the caller may list; see visible.
	perNamespace bool
	// query has the parameters that the operation reads from the query, by name.
	query map[string]queryRule
}

// declared is x-required-right: the word none, or an object.
type declared struct {
	Verb         string `json:"verb"`
	Resource     string `json:"resource"`
	Path         string `json:"path"`
	PerNamespace bool   `json:"perNamespace"`
}

// contract is what api/openapi.yaml says of rights, by method and route as gin writes them; read once.
var contract = sync.OnceValues(func() (map[string]rule, error) { return readRules(api.Spec) })

// parameter is a path parameter as OpenAPI writes it.
var parameter = regexp.MustCompile(`\{(\w+)\}`)

func readRules(spec []byte) (map[string]rule, error) {
	var document struct {
		Paths      map[string]map[string]json.RawMessage `json:"paths"`
		Components declaredComponents                    `json:"components"`
	}
	if err := yaml.Unmarshal(spec, &document); err != nil {
		return nil, fmt.Errorf("reading the contract: %w", err)
	}
	rules := map[string]rule{}
	for path, members := range document.Paths {
		for method, text := range members {
			if method == "parameters" {
				continue
			}
			read, err := readRule(path, text)
			if err == nil {
				read.query, err = readQuery(members["parameters"], text, document.Components)
			}
			if err != nil {
				return nil, fmt.Errorf("reading the contract: %s %s: %w", method, path, err)
			}
			rules[strings.ToUpper(method)+" "+parameter.ReplaceAllString(path, ":$1")] = read
		}
	}
	return rules, nil
}

func readRule(path string, text []byte) (rule, error) {
	var operation struct {
		ID       string                 `json:"operationId"`
		Security *[]map[string][]string `json:"security"`
		Right    json.RawMessage        `json:"x-required-right"`
	}
	if err := json.Unmarshal(text, &operation); err != nil {
		return rule{}, err
	}
	open := operation.Security != nil && len(*operation.Security) == 0
	if string(operation.Right) == `"none"` {
		if !open {
			return rule{}, errors.New(`x-required-right is none, so it needs "security: []" too`)
		}
		return rule{operation: operation.ID, open: true}, nil
	}
	if open {
		return rule{}, errors.New(`"security: []" needs "x-required-right: none" too`)
	}
	var d declared
	if len(operation.Right) == 0 {
		return rule{}, errors.New("x-required-right is missing: every operation says which right it needs, for example {verb: get, resource: " + rayClusters + "}")
	}
	if err := json.Unmarshal(operation.Right, &d); err != nil {
		return rule{}, fmt.Errorf("x-required-right: %w", err)
	}
	return d.rule(operation.ID, path)
}

// rule checks what is declared against the path it is declared for.
func (d declared) rule(operation, path string) (rule, error) {
	named := strings.Contains(path, "{")
	switch {
	case d.Verb == "" || (d.Resource == "") == (d.Path == ""):
		return rule{}, errors.New("x-required-right needs a verb, and a resource or a path")
	case d.PerNamespace && (named || d.Verb != "list" || d.Resource != rayClusters):
		return rule{}, errors.New("x-required-right: perNamespace is for lists of RayClusters of all namespaces")
	case named && d.Resource != rayClusters:
		return rule{}, errors.New("x-required-right: what a RayCluster's path needs is a right on " + rayClusters)
	}
	resource, group, _ := strings.Cut(d.Resource, ".")
	return rule{
		operation: operation, perNamespace: d.PerNamespace,
		right: access.Right{Verb: d.Verb, Group: group, Resource: resource, Path: d.Path},
	}, nil
}

// rulesOf returns the rule of each route, or says which has none.
func rulesOf(routes gin.RoutesInfo) (map[string]rule, error) {
	rules, err := contract()
	if err != nil {
		return nil, err
	}
	for _, route := range routes {
		if _, ok := rules[route.Method+" "+route.Path]; !ok {
			return nil, fmt.Errorf("%s %s has no right in the contract", route.Method, route.Path)
		}
	}
	return rules, nil
}

// visible returns in which of the namespaces the caller of c may do what its operation needs. Operations whose rule is
// perNamespace show nothing of the others.
func (s *server) visible(c *gin.Context, namespaces []string) (map[string]bool, error) {
	_, seen, err := s.sees(c, namespaces)
	return seen, err
}

// sees is visible, and says whether the caller may do it in every namespace, those to come included.
func (s *server) sees(c *gin.Context, namespaces []string) (everywhere bool, seen map[string]bool, err error) {
	seen = make(map[string]bool, len(namespaces))
	right := s.rules[c.Request.Method+" "+c.FullPath()].right
	everywhere, err = s.may(c, right)
	if err != nil || everywhere {
		for _, namespace := range namespaces {
			seen[namespace] = err == nil
		}
		return everywhere, seen, err
	}
	namespaces = slices.Compact(slices.Sorted(slices.Values(namespaces)))
	answers, errs := make([]bool, len(namespaces)), make([]error, len(namespaces))
	var asked sync.WaitGroup
	slots := make(chan struct{}, reviewsAtOnce)
	for i, namespace := range namespaces {
		slots <- struct{}{}
		asked.Go(func() {
			defer func() { <-slots }()
			right := right
			right.Namespace = namespace
			answers[i], errs[i] = s.may(c, right)
		})
	}
	asked.Wait()
	for i, namespace := range namespaces {
		seen[namespace] = answers[i]
	}
	return false, seen, errors.Join(errs...)
}

// reviewsAtOnce bounds how many rights are asked for at the same time for one call.
const reviewsAtOnce = 16

// may reports whether the caller of c has a right; being refused is no error.
func (s *server) may(c *gin.Context, right access.Right) (bool, error) {
	if s.Access == nil {
		return true, nil
	}
	err := s.Access.Authorize(c.Request.Context(), callerOf(c), right)
	if errors.Is(err, access.ErrForbidden) {
		return false, nil
	}
	return err == nil, err
}
