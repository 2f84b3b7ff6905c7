package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
)

// declaredParameter is a parameter as the contract has it: itself, or a reference to one of its components.
type declaredParameter struct {
	Name   string        `json:"name"`
	In     string        `json:"in"`
	Ref    string        `json:"$ref"`
	Schema declaredValue `json:"schema"`
}

// declaredValue is the schema of a parameter's text; lengths are in characters.
type declaredValue struct {
	Ref       string   `json:"$ref"`
	MinLength int      `json:"minLength"`
	MaxLength int      `json:"maxLength"`
	Pattern   string   `json:"pattern"`
	Enum      []string `json:"enum"`
}

// declaredComponents is what parameters may refer to.
type declaredComponents struct {
	Parameters map[string]declaredParameter `json:"parameters"`
	// Schemas are read when a parameter refers to one.
	Schemas map[string]json.RawMessage `json:"schemas"`
}

// queryRule is what a parameter of the query must keep to. The zero value takes any text.
type queryRule struct {
	least, most int // characters; most is 0 where there is no bound
	pattern     *regexp.Regexp
	names       []string
}

// expected says what is wrong with a value; "" when nothing is.
func (r queryRule) expected(value string) string {
	length := utf8.RuneCountInString(value)
	switch {
	case len(r.names) > 0 && !slices.Contains(r.names, value):
		return "one of " + strings.Join(r.names, ", ")
	case r.least == 1 && length == 0:
		return "text that is not empty"
	case length < r.least:
		return fmt.Sprintf("at least %d characters", r.least)
	case r.most > 0 && length > r.most:
		return fmt.Sprintf("at most %d characters", r.most)
	case r.pattern != nil && !r.pattern.MatchString(value):
		return "text that matches " + r.pattern.String()
	}
	return ""
}

func (v declaredValue) rule(components declaredComponents) (queryRule, error) {
	if v.Ref != "" {
		text, known := components.Schemas[strings.TrimPrefix(v.Ref, "#/components/schemas/")]
		if !known {
			return queryRule{}, fmt.Errorf("there is no schema %s", v.Ref)
		}
		v = declaredValue{}
		if err := json.Unmarshal(text, &v); err != nil {
			return queryRule{}, err
		}
	}
	r := queryRule{least: v.MinLength, most: v.MaxLength, names: v.Enum}
	if v.Pattern == "" {
		return r, nil
	}
	var err error
	r.pattern, err = regexp.Compile(v.Pattern)
	return r, err
}

// queryOf reads the parameters of the query among those of an operation.
func queryOf(all []declaredParameter, components declaredComponents) (map[string]queryRule, error) {
	rules := map[string]queryRule{}
	for _, one := range all {
		if one.Ref != "" {
			found, known := components.Parameters[strings.TrimPrefix(one.Ref, "#/components/parameters/")]
			if !known {
				return nil, fmt.Errorf("there is no parameter %s", one.Ref)
			}
			one = found
		}
		if one.In != "query" {
			continue
		}
		read, err := one.Schema.rule(components)
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", one.Name, err)
		}
		rules[one.Name] = read
	}
	return rules, nil
}

// readQuery reads the parameters of the query of an operation, its path's included.
func readQuery(ofPath, operation []byte, components declaredComponents) (map[string]queryRule, error) {
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

// checkQuery refuses what an operation of /v1 does not read, or not with this value: a misspelt filter would otherwise show too
// much. Probes, metrics and the page take anything: load balancers, scrapers and links add parameters of their own.
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
	readable := "no parameter in the query"
	if len(known) > 0 {
		readable = "one of the parameters " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	}
	var faults []apiv1.FieldError
	for _, name := range slices.Sorted(maps.Keys(given)) {
		rule, reads := known[name]
		value := given.Get(name)
		switch {
		case !reads:
			faults = append(faults, apiv1.FieldError{Field: shorten(name), Expected: readable})
		case len(given[name]) > 1:
			faults = append(faults, apiv1.FieldError{Field: name, Value: fmt.Sprintf("%d times", len(given[name])), Expected: "the parameter once"})
		case rule.expected(value) != "":
			faults = append(faults, apiv1.FieldError{Field: name, Value: shorten(value), Expected: rule.expected(value)})
		}
	}
	if len(faults) > 0 {
		s.fail(c, invalid(faults[:min(len(faults), maxFieldErrors)]))
	}
}
