package snapshotfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// InputError says what is wrong with a snapshot file, and where: Field is a path such as nodes[3].state.
type InputError struct {
	File, Field, Value string
	// Want says what would be right.
	Want string
}

// Error writes file, field, value and what would be right, in this order.
func (e *InputError) Error() string {
	where := e.File
	if e.Field != "" {
		where += ": " + e.Field
	}
	if e.Value == "" {
		return where + ": " + e.Want
	}
	return fmt.Sprintf("%s: %s: want %s", where, e.Value, e.Want)
}

// input is one JSON value of the file with the path that leads to it. The first error of a file is kept; after it
// every reading gives zero values.
type input struct {
	file *inputFile
	path string
	raw  json.RawMessage
}

type inputFile struct {
	name    string
	err     error
	unknown unknownKeys
}

// absent reports whether there is no value; null says the same.
func (in input) absent() bool { return len(in.raw) == 0 || string(in.raw) == "null" }

// missingValue stands in an InputError for a value that is not there.
const missingValue = "missing"

// value writes the value in a line. Long ones are cut: the message is for a person.
func (in input) value() string {
	const longest = 60
	if len(in.raw) == 0 {
		return missingValue
	}
	var line bytes.Buffer
	if len(in.raw) > 64*longest || json.Compact(&line, in.raw) != nil {
		line.Reset()
		line.Write(in.raw)
	}
	if line.Len() > longest {
		return strings.ToValidUTF8(string(line.Bytes()[:longest]), "") + "…"
	}
	return line.String()
}

// fail keeps the first error.
func (in input) fail(want string) {
	if in.file.err == nil {
		in.file.err = &InputError{in.file.name, in.path, in.value(), want}
	}
}

// into decodes the value; it reports false when there is none or it does not decode.
func (in input) into(target any, want string) bool {
	if in.absent() || in.file.err != nil {
		return false
	}
	if n := members(in.raw); n > mostMembers {
		in.fail(fmt.Sprintf("at most %d members", mostMembers))
		return false
	}
	if err := json.Unmarshal(in.raw, target); err != nil {
		in.fail(want)
		return false
	}
	return true
}

// mostMembers bounds lists and objects: Kubernetes clusters end at some ten thousand nodes, and a file of 64 MiB could
// hold twenty million empty ones, which take a hundred times the room.
const mostMembers = 100_000

// members counts the members of a list or an object without reading them. The text is known to be JSON.
func members(raw []byte) int {
	if len(raw) <= 2*mostMembers {
		return 0 // too short to have too many: each takes two bytes
	}
	count, depth, quoted := 1, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 1:
			count++
		}
	}
	return count
}

// object is a JSON object whose members are picked by name. It remembers which names are known, so that the members of
// other names can be reported.
type object struct {
	input
	members map[string]json.RawMessage
	known   []string
}

func (in input) object() *object {
	o := &object{input: in}
	in.into(&o.members, "an object {…}")
	return o
}

// fields returns a function that picks the members of an object, and one that reports those not picked, remarks aside,
// when all others are.
func (in input) fields() (field func(name string) input, done func(remarks ...string)) {
	o := in.object()
	pick := func(name string) input {
		if !slices.Contains(o.known, name) {
			o.known = append(o.known, name)
		}
		return o.member(name)
	}
	return pick, func(remarks ...string) { o.note(remarks) }
}

func (o *object) member(name string) input {
	return input{o.file, strings.TrimPrefix(o.path+"."+name, "."), o.members[name]}
}

func (in input) list() []input {
	var elements []json.RawMessage
	in.into(&elements, "a list […]")
	inputs := make([]input, len(elements))
	for i, raw := range elements {
		inputs[i] = input{in.file, in.path + "[" + strconv.Itoa(i) + "]", raw}
	}
	return inputs
}

// objects is a list none of whose elements is null.
func (in input) objects() []input {
	all := in.list()
	for _, each := range all {
		if each.absent() {
			each.fail("an object {…}")
		}
	}
	return all
}

func (in input) text() (s string) {
	in.into(&s, "a string")
	return s
}

// name is a text that must be there.
func (in input) name(want string) string {
	s := in.text()
	if s == "" {
		in.fail(want)
	}
	return s
}

func (in input) boolean() (b bool) {
	in.into(&b, "true or false")
	return b
}

// count reads a whole number in [least, most].
func (in input) count(least, most, absent int64) int64 {
	if in.absent() {
		return absent
	}
	var n int64
	want := fmt.Sprintf("a whole number from %d to %d", least, most)
	if in.into(&n, want) && (n < least || n > most) {
		in.fail(want)
	}
	return n
}

// optionalCount distinguishes an absent number from 0.
func (in input) optionalCount(least, most int64) *int {
	if in.absent() {
		return nil
	}
	n := int(in.count(least, most, 0))
	return &n
}

// number reads a number in [0, most]; nil when there is none.
func (in input) number(most float64) *float64 {
	var f float64
	want := "a number from 0 to " + strconv.FormatFloat(most, 'f', -1, 64)
	if !in.into(&f, want) {
		return nil
	}
	if f < 0 || f > most || math.IsNaN(f) {
		in.fail(want)
	}
	return &f
}

func (in input) moment() (t time.Time) {
	in.into(&t, "a time such as 2026-01-31T12:00:00Z")
	return t
}

// bundle reads what is asked for. nil means absent, which differs from "nothing".
func (in input) bundle() raydemand.Bundle { return in.amounts(mostAmount) }

// capacity reads what a node has, or a new one will have: whatever an Amount can hold. nil means absent.
func (in input) capacity() raydemand.Bundle { return in.amounts(raydemand.MaxAmount) }

func (in input) amounts(most raydemand.Amount) raydemand.Bundle {
	all, ok := in.named(`an object of amounts such as {"CPU": 4, "GPU": 0.5}`)
	if !ok {
		return nil
	}
	bundle := make(raydemand.Bundle, len(all))
	for _, each := range all {
		amount, err := raydemand.ParseAmount(string(each.raw))
		if err != nil || amount < 0 || amount > most || amount == 0 && !isZero(each.raw) {
			want := fmt.Sprintf("an amount from 0 to %s, to four decimal places", most)
			if _, err := raydemand.ParseAmount(strings.Trim(string(each.raw), `"`)); err == nil && each.raw[0] == '"' {
				want += ", without quotes"
			}
			each.fail(want)
		}
		bundle[each.name] = amount
	}
	return bundle
}

// namedInput is a member of an object whose keys may be any.
type namedInput struct {
	input
	name string
}

// named lists the members of such an object by name. It reports false when there is none.
func (in input) named(want string) ([]namedInput, bool) {
	o := object{input: in}
	if !in.into(&o.members, want) {
		return nil, false
	}
	all := make([]namedInput, 0, len(o.members))
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		all = append(all, namedInput{o.member(name), name})
	}
	return all, true
}

// isZero reports whether a JSON number says 0. One that Ray's precision would make 0 does not: what asks for it would
// be called served by any node.
func isZero(number []byte) bool {
	mantissa, _, _ := bytes.Cut(bytes.ToLower(number), []byte("e"))
	return !bytes.ContainsAny(mantissa, "123456789")
}

// mostAmount is 100 TiB in bytes: the sum of a gang's bundles must not saturate, or two gangs would look alike.
const mostAmount raydemand.Amount = 100 << 40 * raydemand.One

func (in input) labels() map[string]string {
	all, ok := in.named(`an object of texts such as {"zone": "a"}`)
	if !ok {
		return nil
	}
	labels := make(map[string]string, len(all))
	for _, each := range all {
		labels[each.name] = each.text()
	}
	return labels
}

func (in input) selector() raydemand.Selector {
	all, ok := in.named(`an object of label expressions such as {"zone": "in(a,b)", "tier": "!spot"}`)
	if !ok {
		return nil
	}
	expressions := make(map[string]string, len(all))
	for _, each := range all {
		text := each.text()
		var refused *raydemand.ExpressionError
		if _, err := raydemand.ParseSelector(map[string]string{each.name: text}); errors.As(err, &refused) {
			each.fail(raydemand.ExpressionWant + "; " + refused.Problem)
			return nil
		}
		expressions[each.name] = text
	}
	selector, err := raydemand.ParseSelector(expressions)
	if err != nil {
		in.fail(err.Error())
	}
	return selector
}

func (in input) selectors() []raydemand.Selector {
	var selectors []raydemand.Selector
	for _, each := range in.list() {
		selectors = append(selectors, each.selector())
	}
	return selectors
}
