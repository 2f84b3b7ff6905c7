package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// declaredParameter is a parameter as the contract has it: itself, or a reference to one of its components.
type declaredParameter struct {
	Name string `json:"name"`
	In   string `json:"in"`
	Ref  string `json:"$ref"`
}

// queryOf names the parameters of the query among those of an operation.
func queryOf(all []declaredParameter, components map[string]declaredParameter) ([]string, error) {
	var names []string
	for _, one := range all {
		if one.Ref != "" {
			found, known := components[strings.TrimPrefix(one.Ref, "#/components/parameters/")]
			if !known {
				return nil, fmt.Errorf("there is no parameter %s", one.Ref)
			}
			one = found
		}
		if one.In == "query" {
			names = append(names, one.Name)
		}
	}
	return names, nil
}

// readQuery names the parameters of the query of an operation, its path's included.
func readQuery(ofPath, operation []byte, components map[string]declaredParameter) ([]string, error) {
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
	return queryOf(slices.Concat(shared, own.Parameters), components)
}

// checkQuery refuses what no operation of /v1 reads: a misspelt filter would otherwise show too much. Probes, metrics and the
// page take anything: load balancers, scrapers and links add parameters of their own.
func (s *server) checkQuery(c *gin.Context) {
	if c.Request.URL.RawQuery == "" || !strings.HasPrefix(c.FullPath(), "/v1/") {
		return
	}
	given, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		s.fail(c, &problem{kind: invalidRequest, detail: "the query cannot be read: " + shorten(err.Error())})
		return
	}
	known := s.rules[c.Request.Method+" "+c.FullPath()].query
	expected := "no parameter in the query"
	if len(known) > 0 {
		expected = "one of the parameters " + strings.Join(known, ", ")
	}
	var faults []FieldError
	for _, name := range slices.Sorted(maps.Keys(given)) {
		switch {
		case !slices.Contains(known, name):
			faults = append(faults, FieldError{Field: shorten(name), Expected: expected})
		case len(given[name]) > 1:
			faults = append(faults, FieldError{Field: name, Value: fmt.Sprintf("%d times", len(given[name])), Expected: "the parameter once"})
		}
	}
	if len(faults) > 0 {
		s.fail(c, invalid(faults[:min(len(faults), maxFieldErrors)]))
	}
}
