package raydemand

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Operator says how a label constraint compares: In or NotIn. The numbers are those of ray.rpc.LabelSelectorOperator.
type Operator int

// The two operators of Ray's label selectors.
const (
	In    Operator = 1
	NotIn Operator = 2
)

// Constraint is one term of a Selector: the label Key must (In) or must not (NotIn) have one of Values.
// NotIn also holds where the label is absent.
type Constraint struct {
	Key    string
	Op     Operator
	Values []string // sorted, no duplicates
}

// Selector is a conjunction of label constraints, sorted by key. The empty selector matches every node:
// Ray 2.49 and later always append one, so "has a selector" never means "is constrained".
type Selector []Constraint

// NewSelector returns the canonical form: constraints sorted by key, values sorted and unique.
// Ray sends the values of in(a,b) in random order (docs/reference/facts.md#order-of-selector-values).
func NewSelector(constraints ...Constraint) Selector {
	s := make(Selector, 0, len(constraints))
	for _, c := range constraints {
		values := slices.Clone(c.Values)
		slices.Sort(values)
		s = append(s, Constraint{Key: c.Key, Op: c.Op, Values: slices.Compact(values)})
	}
	slices.SortFunc(s, func(a, b Constraint) int {
		if c := strings.Compare(a.Key, b.Key); c != 0 {
			return c
		}
		if a.Op != b.Op {
			return int(a.Op) - int(b.Op)
		}
		return slices.Compare(a.Values, b.Values)
	})
	return s
}

// ParseSelector reads Ray's map form, label key to expression: v, !v, in(a,b), !in(a,b). It refuses what Ray refuses
// (docs/reference/facts.md#label-expressions). The error is an *ExpressionError.
func ParseSelector(expressions map[string]string) (Selector, error) {
	constraints := make([]Constraint, 0, len(expressions))
	for _, key := range slices.Sorted(maps.Keys(expressions)) {
		c, err := parseExpression(key, expressions[key])
		if err != nil {
			return nil, err
		}
		constraints = append(constraints, c)
	}
	return NewSelector(constraints...), nil
}

// ExpressionWant says how the expression of a label is written.
const ExpressionWant = "v, !v, in(a,b) or !in(a,b), each value of at most 63 letters, digits, '-', '_' and '.', a letter or a digit at both ends"

// ExpressionError says what is wrong with the expression of one label.
type ExpressionError struct {
	Key, Expression string
	// Problem says what Ray would not accept.
	Problem string
}

// Error names the label, the expression, the problem and what would be right.
func (e *ExpressionError) Error() string {
	return fmt.Sprintf("label %q: %q: %s; want %s", e.Key, e.Expression, e.Problem, ExpressionWant)
}

func parseExpression(key, expression string) (Constraint, error) {
	c := Constraint{Key: key, Op: In}
	refuse := func(problem string) (Constraint, error) {
		return c, &ExpressionError{key, expression, problem}
	}
	text := strings.TrimSpace(expression)
	if text == "" {
		c.Values = []string{""} // the label is there and empty
		return c, nil
	}
	if rest, negated := strings.CutPrefix(text, "!"); negated {
		if c.Op, text = NotIn, strings.TrimSpace(rest); text == "" {
			return refuse("no value after !")
		}
	}
	c.Values = []string{text}
	if list, isList := strings.CutPrefix(text, "in("); isList {
		if list, isList = strings.CutSuffix(list, ")"); !isList {
			return refuse("the list has no ) at its end")
		}
		if strings.TrimSpace(list) == "" {
			return refuse("the list is empty")
		}
		c.Values = strings.Split(list, ",")
	}
	for i, value := range c.Values {
		c.Values[i] = strings.TrimSpace(value)
		if problem := valueProblem(c.Values[i]); problem != "" {
			return refuse(problem)
		}
	}
	return c, nil
}

// labelValue is what Kubernetes and Ray take for a label's value, the empty one aside.
var labelValue = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?$`)

// valueProblem says why a label cannot have this value, or nothing.
func valueProblem(value string) string {
	switch {
	case value == "":
		return "a value of the list is empty"
	case !labelValue.MatchString(value):
		return fmt.Sprintf("%q is no label value", value)
	}
	return ""
}

// Check returns an *ExpressionError where the selector could not be written as a label's expression and read again as the same, such as one
// without values.
func (s Selector) Check() error {
	for _, c := range s {
		expression := c.Expression()
		if read, err := parseExpression(c.Key, expression); err != nil {
			return err
		} else if !slices.Equal(read.Values, c.Values) {
			return &ExpressionError{c.Key, expression, fmt.Sprintf("read again it has the values %q, not %q", read.Values, c.Values)}
		}
	}
	return nil
}

// Matches reports whether a node with these labels satisfies every constraint.
func (s Selector) Matches(labels map[string]string) bool {
	for _, c := range s {
		value, present := labels[c.Key]
		listed := present && slices.Contains(c.Values, value)
		if listed != (c.Op == In) {
			return false
		}
	}
	return true
}

// Expression writes the constraint's right-hand side: v, !v, in(a,b) or !in(a,b).
func (c Constraint) Expression() string {
	text := strings.Join(c.Values, ",")
	if len(c.Values) != 1 {
		text = "in(" + text + ")"
	}
	if c.Op == NotIn {
		text = "!" + text
	}
	return text
}

// String writes key=expression terms separated by spaces.
func (s Selector) String() string {
	terms := make([]string, len(s))
	for i, c := range s {
		terms[i] = c.Key + "=" + c.Expression()
	}
	return strings.Join(terms, " ")
}

// MarshalJSON writes Ray's map form. Two constraints on one key cannot be written that way; the GCS never sends them.
func (s Selector) MarshalJSON() ([]byte, error) {
	expressions := make(map[string]string, len(s))
	for _, c := range s {
		expressions[c.Key] = c.Expression()
	}
	return json.Marshal(expressions)
}

// UnmarshalJSON reads Ray's map form.
func (s *Selector) UnmarshalJSON(text []byte) error {
	var expressions map[string]string
	if err := json.Unmarshal(text, &expressions); err != nil {
		return fmt.Errorf("label selector: %w", err)
	}
	parsed, err := ParseSelector(expressions)
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}
