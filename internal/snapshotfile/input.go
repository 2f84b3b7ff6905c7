package snapshotfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// InputError says what is wrong in a snapshot file. Field is a path such as nodes[3].state.
type InputError struct {
	File, Field, Value string
	// Want says what would be right.
	Want string
}

// Error returns file, field, value and what would be right, in this order.
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

// inputError returns the fault of a file as an error.
func inputError(file string, fault *fieldpath.Fault) *InputError {
	return &InputError{file, fault.Path.String(), fault.Value, fault.Want}
}

// input is a JSON value in a snapshot, with methods that read the types of a snapshot.
type input struct{ fieldpath.JSON }

func read(text []byte) (input, *fieldpath.Document) {
	in, doc := fieldpath.Read(text)
	return input{in}, doc
}

// fields returns a function that picks the members of an object, and one that reports the members that were not picked
// and are not ignored.
func (in input) fields() (field func(name string) input, done func(ignored ...string)) {
	members := in.Members()
	return func(name string) input { return input{members.Pick(name)} }, members.Done
}

func (in input) list() []input { return inputs(in.List()) }

func (in input) objects() []input { return inputs(in.Objects()) }

// named returns the members of an object that may have any keys.
func (in input) named(want string) ([]input, bool) {
	members, ok := in.Named(want)
	return inputs(members), ok
}

func inputs(values []fieldpath.JSON) []input {
	all := make([]input, len(values))
	for i, each := range values {
		all[i] = input{each}
	}
	return all
}

func (in input) optionalInt(least, most int64) *int {
	long := in.OptionalCount(least, most)
	if long == nil {
		return nil
	}
	n := int(*long)
	return &n
}

// bundle reads a request for resources. nil means absent, which differs from an empty request.
func (in input) bundle() raydemand.Bundle { return in.amounts(mostAmount) }

// capacity reads the resources of a node: any amount that fits an Amount. nil means absent.
func (in input) capacity() raydemand.Bundle { return in.amounts(raydemand.MaxAmount) }

func (in input) amounts(most raydemand.Amount) raydemand.Bundle {
	all, ok := in.named(`an object of amounts such as {"CPU": 4, "GPU": 0.5}`)
	if !ok {
		return nil
	}
	bundle := make(raydemand.Bundle, len(all))
	for _, each := range all {
		bundle[each.Name()] = each.amount(most)
	}
	return bundle
}

// amount reads an amount of one resource.
func (in input) amount(most raydemand.Amount) raydemand.Amount {
	amount, err := raydemand.ParseAmount(string(in.Raw()))
	if err != nil || amount < 0 || amount > most || amount == 0 && !isZero(in.Raw()) {
		want := fmt.Sprintf("an amount from 0 to %s, to four decimal places", most)
		unquoted, isQuoted := strings.CutPrefix(strings.TrimSuffix(string(in.Raw()), `"`), `"`)
		if _, err := raydemand.ParseAmount(unquoted); err == nil && isQuoted {
			want += ", without quotes"
		}
		in.Fail(want)
	}
	return amount
}

// isZero reports whether a JSON number is 0. A number that Ray's precision rounds to 0 is not: every node would seem to
// serve a request for it.
func isZero(number []byte) bool {
	mantissa, _, _ := bytes.Cut(bytes.ToLower(number), []byte("e"))
	return !bytes.ContainsAny(mantissa, "123456789")
}

// mostAmount is 100 TiB in bytes. The sum of a gang's bundles must not saturate: two gangs would look alike.
const mostAmount raydemand.Amount = 100 << 40 * raydemand.One

func (in input) labels() map[string]string {
	all, ok := in.named(`an object of texts such as {"zone": "a"}`)
	if !ok {
		return nil
	}
	labels := make(map[string]string, len(all))
	for _, each := range all {
		labels[each.Name()] = each.Text()
	}
	return labels
}

// texts returns a list of texts; nil if there are none.
func (in input) texts() []string {
	var texts []string
	for _, each := range in.list() {
		texts = append(texts, each.Text())
	}
	return texts
}

func (in input) selector() raydemand.Selector {
	all, ok := in.named(`an object of label expressions such as {"zone": "in(a,b)", "tier": "!spot"}`)
	if !ok {
		return nil
	}
	expressions := make(map[string]string, len(all))
	for _, each := range all {
		text := each.Text()
		var refused *raydemand.ExpressionError
		if _, err := raydemand.ParseSelector(map[string]string{each.Name(): text}); errors.As(err, &refused) {
			each.Fail(raydemand.ExpressionWant + "; " + refused.Problem)
			return nil
		}
		expressions[each.Name()] = text
	}
	selector, err := raydemand.ParseSelector(expressions)
	if err != nil {
		in.Fail(err.Error())
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
