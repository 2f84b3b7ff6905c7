package raydemand

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSelectorMatchesAsRaySays(t *testing.T) {
	labels := map[string]string{"zone": "us-1", "tier": "spot", "empty": ""}
	for _, test := range []struct {
		name     string
		selector map[string]string
		matches  bool
	}{
		{"the empty selector matches every node", nil, true},
		{"equal", map[string]string{"zone": "us-1"}, true},
		{"not equal", map[string]string{"zone": "us-2"}, false},
		{"absent label", map[string]string{"gen": "a"}, false},
		{"negation of another value", map[string]string{"zone": "!us-2"}, true},
		{"negation of the value", map[string]string{"tier": "!spot"}, false},
		{"negation holds where the label is absent", map[string]string{"gen": "!a"}, true},
		{"in", map[string]string{"zone": "in(us-2,us-1)"}, true},
		{"in without it", map[string]string{"zone": "in(us-2, us-3)"}, false},
		{"not in", map[string]string{"zone": "!in(us-2,us-3)"}, true},
		{"not in, absent", map[string]string{"gen": "!in(a,b)"}, true},
		{"an empty value is a value", map[string]string{"empty": ""}, true},
		{"every term must hold", map[string]string{"zone": "us-1", "tier": "!spot"}, false},
	} {
		s, err := ParseSelector(test.selector)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if got := s.Matches(labels); got != test.matches {
			t.Errorf("%s: %s matches = %v", test.name, s, got)
		}
	}
}

func TestSelectorRefusesWhatRayRefuses(t *testing.T) {
	for expression, problem := range map[string]string{
		"in(a,b":                "no ) at its end",
		"!in(a":                 "no ) at its end",
		"in()":                  "the list is empty",
		"!in( )":                "the list is empty",
		"!":                     "no value after !",
		" ! ":                   "no value after !",
		"in(a,,b)":              "a value of the list is empty",
		"in(a,)":                "a value of the list is empty",
		"in(a,b))":              `"b)" is not a valid label value`,
		"in((a)":                `"(a" is not a valid label value`,
		"a,b":                   `"a,b" is not a valid label value`,
		"!!a":                   `"!a" is not a valid label value`,
		"in(!a)":                `"!a" is not a valid label value`,
		"in a)":                 `"in a)" is not a valid label value`,
		"(a)":                   `"(a)" is not a valid label value`,
		"-spot":                 `"-spot" is not a valid label value`,
		"spot_":                 `"spot_" is not a valid label value`,
		"a b":                   `"a b" is not a valid label value`,
		strings.Repeat("a", 64): "is not a valid label value",
	} {
		_, err := ParseSelector(map[string]string{"zone": expression})
		var refused *ExpressionError
		if !errors.As(err, &refused) || refused.Key != "zone" || refused.Expression != expression || !strings.Contains(err.Error(), problem+"; want v, !v, in(a,b) or") {
			t.Errorf("ParseSelector(%q): %v; want an error that names the label, the expression, and %q", expression, err, problem)
		}
	}
}

func TestSelectorTakesEveryValueThatALabelCanHave(t *testing.T) {
	long := "a" + strings.Repeat(".", 61) + "Z"
	for _, expression := range []string{"", "a", "7", "a-._b", "in", "!in", long, "!" + long, "in(a)", "in(a, b,c )", "!in(" + long + ")"} {
		if _, err := ParseSelector(map[string]string{"zone": expression}); err != nil {
			t.Error(err)
		}
	}
}

func TestSelectorOrderOfValuesDoesNotMatter(t *testing.T) {
	a := NewSelector(Constraint{Key: "z", Op: In, Values: []string{"b", "a", "b"}}, Constraint{Key: "a", Op: NotIn, Values: []string{"x"}})
	b := NewSelector(Constraint{Key: "a", Op: NotIn, Values: []string{"x"}}, Constraint{Key: "z", Op: In, Values: []string{"a", "b"}})
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("canonical forms differ:\n%s", diff)
	}
}

func TestSelectorSurvivesJSON(t *testing.T) {
	want, err := ParseSelector(map[string]string{"zone": "us-1", "tier": "!spot", "gen": "in(a,b)", "old": "!in(x,y)", "none": ""})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Selector
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("through %s:\n%s", text, diff)
	}
}
