package raydemand

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Operator is how a label constraint compares: In or NotIn. The numbers are those of ray.rpc.LabelSelectorOperator.
type Operator int

// The operators of Ray's label selectors.
const (
	In    Operator = 1
	NotIn Operator = 2
)

// Constraint is one term of a Selector: the value of the label Key must be (In) or must not be (NotIn) one of Values.
// NotIn also matches if the label is absent.
type Constraint struct {
	Key    string
	Op     Operator
	Values []string // sorted, no duplicates
}

// Selector is a conjunction of label constraints, sorted by key. The empty selector matches every node. Ray 2.49 and
// later always append an empty one, so having a selector does not mean being constrained.
type Selector []Constraint

// NewSelector returns the canonical form: constraints sorted by key, values sorted and unique. Ray sends the values of
// in(a,b) in random order (docs/reference/facts.md#order-of-selector-values).
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

// ExpressionWant describes valid label expressions in error messages.
const ExpressionWant = "v, !v, in(a,b) or !in(a,b), each value of at most 63 letters, digits, '-', '_' and '.', " +
	"a letter or a digit at both ends"

// ExpressionError reports an invalid expression of one label.
type ExpressionError struct {
	Key, Expression string
	// Problem says what Ray would not accept.
	Problem string
}

// Error returns the label, the expression, the problem and the valid form.
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
		c.Values = []string{""} // The label is present and empty.
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

// labelValue matches the label values that Kubernetes and Ray accept, except the empty one.
var labelValue = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?$`)

// valueProblem returns why a label cannot have this value, or "".
func valueProblem(value string) string {
	switch {
	case value == "":
		return "a value of the list is empty"
	case !labelValue.MatchString(value):
		return fmt.Sprintf("%q is not a valid label value", value)
	}
	return ""
}

// Check returns an *ExpressionError if the selector cannot be written as label expressions and read again unchanged,
// for example if a constraint has no values.
func (s Selector) Check() error {
	for _, c := range s {
		expression := c.Expression()
		if read, err := parseExpression(c.Key, expression); err != nil {
			return err
		} else if !slices.Equal(read.Values, c.Values) {
			problem := fmt.Sprintf("reading it again gives the values %q, not %q", read.Values, c.Values)
			return &ExpressionError{c.Key, expression, problem}
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

// Expression returns the constraint's right-hand side: v, !v, in(a,b) or !in(a,b).
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

// String returns key=expression terms separated by spaces.
func (s Selector) String() string {
	terms := make([]string, len(s))
	for i, c := range s {
		terms[i] = c.Key + "=" + c.Expression()
	}
	return strings.Join(terms, " ")
}

// MarshalJSON writes Ray's map form, which cannot express two constraints on one key. The GCS never sends them.
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
