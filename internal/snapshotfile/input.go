package snapshotfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
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

// decode reads a value by the JSON tags of a Go type. What is absent or null leaves the Go value as it is. Elements of
// lists and what pointers point to are new, with the defaults of their fields.
func decode(in fieldpath.JSON, into reflect.Value, rule *fieldRule) {
	if in.Absent() || in.Failed() {
		return
	}
	switch target := into.Addr().Interface().(type) {
	case *time.Time:
		*target = in.Time()
		return
	case *json.RawMessage:
		*target = in.Raw()
		return
	case *raydemand.Amount:
		*target = amount(in, rule)
		return
	case *raydemand.Selector:
		*target = selector(in)
		return
	case *raydemand.SliceRequirement:
		required, err := raydemand.ParseSliceRequirement(in.Raw())
		if refused, ok := errors.AsType[*raydemand.SliceError](err); ok {
			in.FailBelow(refused.Field, refused.Value, refused.Want)
			return
		}
		*target = *required
		return
	}
	switch into.Kind() {
	case reflect.Pointer:
		v := newValue(into.Type().Elem())
		decode(in, v, rule)
		into.Set(v.Addr())
	case reflect.Struct:
		decodeFields(in, into, nil)
	case reflect.Slice:
		decodeList(in, into, rule)
	case reflect.Map:
		decodeMap(in, into, rule)
	case reflect.String:
		if into.SetString(in.Text()); !rule.Allows(into) {
			in.Fail(rule.valid)
		}
	case reflect.Bool:
		into.SetBool(in.Flag())
	default:
		if in.Into(into.Addr().Interface(), rule.valid) && !rule.Allows(into) {
			in.Fail(rule.valid)
		}
	}
}

// decodeFields reads and checks the members of an object. It knows only the fields with the given keys, or all of the
// struct, and does not report the ignored keys as unknown.
func decodeFields(in fieldpath.JSON, into reflect.Value, keys []string, ignored ...string) *fieldpath.Members {
	members, fields := in.Members(), fieldsOf(into.Type())
	there := 0
	for i := range fields {
		f := &fields[i]
		if keys != nil && !slices.Contains(keys, f.Key) {
			continue
		}
		v := into.FieldByIndex(f.Index)
		if members.Has(f.Key) {
			there++
			decode(members.Member(f.Key), v, &f.Rule)
			if v.Kind() == reflect.Slice && v.Len() == 0 && f.Omitted {
				v.SetZero() // what an export leaves out is read alike, however it is written
			}
		}
		if empty := v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0; empty && f.Rule.Required {
			if missing := members.Member(f.Key); missing.Absent() || !v.CanInt() {
				missing.Fail(cmp.Or(f.Rule.Want, f.Rule.valid))
			}
		}
	}
	if !in.Failed() {
		checkTogether(members, into.Addr().Interface())
	}
	if there < members.Len() {
		if keys == nil {
			for i := range fields {
				keys = append(keys, fields[i].Key)
			}
		}
		members.Know(keys)
		members.Done(ignored...)
	}
	return members
}

// nodeKeys are the keys that a node must have, and a head need not, each with what would be right.
var nodeKeys = [][2]string{
	{"pod", "the pod's name"}, {"group", "the worker group's name"},
	{"state", rules["Node.state"].complete(reflect.TypeFor[model.NodeState]()).valid},
}

func decodeList(in fieldpath.JSON, into reflect.Value, rule *fieldRule) {
	elements := in.List()
	list := reflect.MakeSlice(into.Type(), len(elements), len(elements))
	for i, each := range elements {
		v := list.Index(i)
		if v.Kind() == reflect.Struct {
			v.Set(newValue(v.Type()))
			if each.Absent() {
				each.Fail("an object {…}")
			}
		}
		if decode(each, v, rule); v.Kind() == reflect.Slice && v.Len() == 0 {
			v.SetZero()
		}
		if n, is := v.Addr().Interface().(*model.Node); is { // a head needs none of these
			for k, value := range []string{n.Pod, n.Group, string(n.State)} {
				if value == "" {
					each.Members().Member(nodeKeys[k][0]).Fail(nodeKeys[k][1])
				}
			}
		}
	}
	into.Set(list)
	if !in.Failed() {
		checkUnique(elements, list)
	}
}

// checkUnique reports an element of a list with a name that an earlier one has.
func checkUnique(elements []fieldpath.JSON, list reflect.Value) {
	if list.Type().Elem().Kind() != reflect.Struct {
		return
	}
	fields := fieldsOf(list.Type().Elem())
	by := slices.IndexFunc(fields, func(f field) bool { return f.Rule.Unique })
	if by < 0 {
		return
	}
	first := make(map[string]int, len(elements))
	for i, each := range elements {
		name := list.Index(i).FieldByIndex(fields[by].Index).String()
		place, is := list.Index(i).Addr().Interface().(*landing.Place)
		if name == "" && fields[by].Omitted || is && place.New {
			continue
		}
		if before, twice := first[name]; twice {
			each.Members().Member(fields[by].Key).
				Fail(fmt.Sprintf("a unique name: %s has this one", elements[before].Path()))
		}
		first[name] = i
	}
}

func decodeMap(in fieldpath.JSON, into reflect.Value, rule *fieldRule) {
	want := `an object of counts such as {"workers": 2}`
	switch into.Type().Elem() {
	case reflect.TypeFor[raydemand.Amount]():
		want = `an object of amounts such as {"CPU": 4, "GPU": 0.5}`
	case reflect.TypeFor[string]():
		want = `an object of texts such as {"zone": "a"}`
	}
	all, ok := in.Named(want)
	if !ok {
		return
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(all)))
	v := reflect.New(into.Type().Elem()).Elem()
	for _, each := range all {
		if v.SetZero(); each.Absent() && v.CanInt() {
			each.Fail(rule.valid)
		}
		if decode(each, v, rule); each.Name() == "" && v.Type() == reflect.TypeFor[raydemand.Amount]() {
			in.Fail(`the name of each resource, such as {"GPU": 1}`)
		}
		into.SetMapIndex(reflect.ValueOf(each.Name()), v)
	}
}

// amount reads an amount of one resource.
func amount(in fieldpath.JSON, rule *fieldRule) raydemand.Amount {
	amount, err := raydemand.ParseAmount(string(in.Raw()))
	if err != nil || !rule.Allows(reflect.ValueOf(amount)) || amount == 0 && !isZero(in.Raw()) {
		in.Fail(rule.valid)
	}
	return amount
}

// isZero reports whether a JSON number is 0. A number that Ray's precision rounds to 0 is not: every node would seem to
// serve a request for it.
func isZero(number []byte) bool {
	mantissa, _, _ := bytes.Cut(bytes.ToLower(number), []byte("e"))
	return !bytes.ContainsAny(mantissa, "123456789")
}

func selector(in fieldpath.JSON) raydemand.Selector {
	all, ok := in.Named(`an object of label expressions such as {"zone": "in(a,b)", "tier": "!spot"}`)
	if !ok {
		return nil
	}
	expressions := make(map[string]string, len(all))
	for _, each := range all {
		expressions[each.Name()] = each.Text()
	}
	selector, err := raydemand.ParseSelector(expressions)
	if refused, ok := errors.AsType[*raydemand.ExpressionError](err); ok {
		at := slices.IndexFunc(all, func(each fieldpath.JSON) bool { return each.Name() == refused.Key })
		all[at].Fail(raydemand.ExpressionWant + "; " + refused.Problem)
	}
	return selector
}
