package api

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/apiv1"
)

// rayClusters is the resource of all rights on RayClusters.
const rayClusters = "rayclusters.ray.io"

// operation is what a route requires.
type operation struct {
	// ID is the operationId in the contract.
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

// ofCluster is the route of one RayCluster.
const ofCluster = "/v1/namespaces/:namespace/rayclusters/:name"

// The rights on RayClusters.
var (
	get     = access.Right{Verb: "get", Group: "ray.io", Resource: "rayclusters"}
	list    = access.Right{Verb: "list", Group: "ray.io", Resource: "rayclusters"}
	request = access.Right{Verb: "request", Group: "ray.io", Resource: "rayclusters"}
	patch   = access.Right{Verb: "patch", Group: "ray.io", Resource: "rayclusters"}
)

// namespaceRule is the rule for a namespace as a query parameter.
var namespaceRule = parameter{least: 1, most: 63, pattern: regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)}

// operations are all operations, by method and route. The server does not start if one of its routes is missing, and
// the contract says the same (TestTheContractHasTheRightsAndParametersOfTheServer).
var operations = map[string]operation{
	"GET /v1/rayclusters":                            {ID: "listClusters", Right: list, PerNamespace: true},
	"GET /v1/namespaces/:namespace/rayclusters":      {ID: "listNamespaceClusters", Right: list},
	"GET " + ofCluster:                               {ID: "getCluster", Right: get},
	"GET " + ofCluster + "/snapshot":                 {ID: "getSnapshot", Right: get},
	"GET " + ofCluster + "/request_resources":        {ID: "getRequestedResources", Right: get},
	"POST " + ofCluster + "/request_resources":       {ID: "requestResources", Right: request},
	"DELETE " + ofCluster + "/request_resources":     {ID: "clearRequestedResources", Right: request},
	"GET " + ofCluster + "/requests":                 {ID: "listClusterRequests", Right: get},
	"GET " + ofCluster + "/request_resources/:id":    {ID: "getRequest", Right: get},
	"PUT " + ofCluster + "/request_resources/:id":    {ID: "keepRequest", Right: request},
	"DELETE " + ofCluster + "/request_resources/:id": {ID: "deleteRequest", Right: request},
	"PUT " + ofCluster + "/manage":                   {ID: "manageCluster", Right: patch},
	"DELETE " + ofCluster + "/manage":                {ID: "unmanageCluster", Right: patch},
	"PUT " + ofCluster + "/freeze":                   {ID: "freezeCluster", Right: patch},
	"DELETE " + ofCluster + "/freeze":                {ID: "unfreezeCluster", Right: patch},
	"GET " + ofCluster + "/give_back":                {ID: "getGiveBack", Right: get},
	"POST " + ofCluster + "/give_back":               {ID: "giveBack", Right: patch},
	"DELETE " + ofCluster + "/give_back":             {ID: "endGiveBack", Right: patch},
	"GET " + ofCluster + "/explain": {ID: "explain", Right: get, query: map[string]parameter{
		"group": {most: 253}, "pod": {most: 253}, "gang": {most: 253}, "bundle": {most: 4096}, "request": {most: 253},
	}},
	"POST " + ofCluster + "/plan":       {ID: "planCluster", Right: get},
	"GET " + ofCluster + "/history":     {ID: "listHistory", Right: get},
	"GET " + ofCluster + "/history/:id": {ID: "getHistory", Right: get},
	"GET " + ofCluster + "/events":      {ID: "followCluster", Right: get},
	"GET /v1/costs": {ID: "listCosts", Right: list, PerNamespace: true, query: map[string]parameter{
		"by": {oneOf: []string{"cluster", "group", "owner", "cause"}}, "namespace": namespaceRule,
	}},
	"GET /v1/nodepools": {ID: "listNodepools", Right: access.Right{Verb: "list", Resource: "nodes"}},
	"GET /healthz":      {ID: "healthz", Open: true},
	"GET /readyz":       {ID: "readyz", Open: true},
	"GET /metrics":      {ID: "metrics", Right: access.Right{Verb: "get", Path: "/metrics"}},
	"GET /openapi.yaml": {ID: "openapi", Open: true},
	"GET /":             {ID: "page", Open: true},
}

// parameter is the rule for the text of a query parameter; lengths are in characters. The zero value accepts any text.
type parameter struct {
	least, most int
	pattern     *regexp.Regexp
	oneOf       []string
}

// expected says what a bad value should be; it returns "" for a good value.
func (p parameter) expected(value string) string {
	length := utf8.RuneCountInString(value)
	switch {
	case p.oneOf != nil && !slices.Contains(p.oneOf, value):
		return "one of " + strings.Join(p.oneOf, ", ")
	case length < p.least:
		return "text that is not empty"
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
