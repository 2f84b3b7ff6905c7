package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxAmount is the largest amount of one resource that a plan can count. A larger one would come back as another
// number.
const maxAmount = 100 << 40 * raydemand.One

const nonNegative = "a number of at least 0"

// amount decodes a quantity. It refuses one that Ray's precision would round to 0, because that would request nothing.
func (d *decoder) amount(path fieldpath.Path) (raydemand.Amount, error) {
	token, err := d.token()
	if err != nil {
		return 0, err
	}
	number, ok := token.(json.Number)
	if !ok {
		return 0, d.unexpected(path, token, nonNegative)
	}
	text := number.String()
	amount, err := raydemand.ParseAmount(text)
	switch {
	case err != nil || amount > maxAmount:
		d.fault(path, text, "a number of at most "+maxAmount.String())
	case amount < 0 || strings.HasPrefix(text, "-") && isPositive(text[1:]):
		d.fault(path, text, nonNegative)
	case isPositive(text) && belowPrecision(text):
		d.fault(path, text, "0, or at least 0.0001, the precision of Ray's amounts")
	default:
		return amount, nil
	}
	return 0, nil
}

// belowPrecision compares the number before anything rounds it, as the CRD does.
func belowPrecision(text string) bool {
	f, err := strconv.ParseFloat(text, 64)
	return err != nil || f < raydemand.Amount(1).Float()
}

// isPositive reports whether the mantissa of a JSON number without sign has a digit other than 0.
func isPositive(text string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return strings.ContainsAny(mantissa, "123456789")
}

// integer decodes a whole number from least to most.
func (d *decoder) integer(path fieldpath.Path, least, most int64) (int64, error) {
	token, err := d.token()
	if err != nil {
		return 0, err
	}
	return d.integerFrom(token, path, least, most)
}

// integerFrom decodes a whole number, given its token. 4.0 is one too: JSON has no other type for it.
func (d *decoder) integerFrom(token json.Token, path fieldpath.Path, least, most int64) (int64, error) {
	expected := fmt.Sprintf("a whole number from %d to %d", least, most)
	number, ok := token.(json.Number)
	if !ok {
		return 0, d.unexpected(path, token, expected)
	}
	amount, err := raydemand.ParseAmount(number.String())
	if n := int64(amount / raydemand.One); err == nil && amount%raydemand.One == 0 && n >= least && n <= most {
		return n, nil
	}
	d.fault(path, number.String(), expected)
	return 0, nil
}

func (d *decoder) boolean(path fieldpath.Path, into *bool) error {
	token, err := d.token()
	if err != nil {
		return err
	}
	value, ok := token.(bool)
	if !ok {
		return d.unexpected(path, token, "true or false")
	}
	*into = value
	return nil
}

func (d *decoder) selector(path fieldpath.Path) (raydemand.Selector, error) {
	expressions, labels := map[string]string{}, 0
	err := d.object(path, func(key string, at fieldpath.Path) error {
		if labels++; labels == d.maxLabels+1 {
			d.fault(path, "more", fmt.Sprintf("at most %d labels", d.maxLabels))
		}
		if labels > d.maxLabels {
			return d.skip()
		}
		if !isName(key) {
			return d.badName(path, key, "a label key")
		}
		expression, ok, err := d.expression(at, key)
		if ok {
			expressions[key] = expression
			d.values += strings.Count(expression, ",") + 1
			d.text += utf8.RuneCountInString(key) + utf8.RuneCountInString(expression)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	selector, err := raydemand.ParseSelector(expressions)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return selector, nil
}

// expression decodes the expression of a label. It returns false for a bad one, which it records.
func (d *decoder) expression(path fieldpath.Path, key string) (expression string, ok bool, err error) {
	const expected = "an expression: v, !v, in(a,b) or !in(a,b)"
	token, err := d.token()
	if err != nil {
		return "", false, err
	}
	expression, isText := token.(string)
	if !isText {
		return "", false, d.unexpected(path, token, expected)
	}
	_, err = raydemand.ParseSelector(map[string]string{key: expression})
	if err != nil || utf8.RuneCountInString(expression) > maxExpression || !isPrintable(expression) {
		d.fault(path, fmt.Sprintf("%q", shorten(expression)), expected)
		return "", false, nil
	}
	return expression, true, nil
}

// badName records a bad name in the object at path, and skips the value.
func (d *decoder) badName(path fieldpath.Path, name, what string) error {
	expected := fmt.Sprintf("%s: 1 to %d printable characters, no space around it", what, maxName)
	d.fault(path, fmt.Sprintf("%q", shorten(name)), expected)
	return d.skip()
}

func isName(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= maxName && strings.TrimSpace(name) == name && isPrintable(name)
}

func isPrintable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// requestedBundle decodes an entry of bundles. If resources or slice is an object, then resources, slice and count have
// their meaning in this API; otherwise the entry is a plain bundle, in which they are Ray resources with these names.
func (d *decoder) requestedBundle(path fieldpath.Path) (apiv1.BundleRequest, error) {
	entry := apiv1.BundleRequest{Bundle: raydemand.Bundle{}, Count: 1}
	special := map[string]json.RawMessage{}
	bundle, err := d.bundleWith(path, func(name string) (bool, error) {
		if name != "resources" && name != "slice" && name != "count" {
			return false, nil
		}
		raw, err := d.raw()
		special[name] = raw
		return true, err
	})
	if err != nil {
		return entry, err
	}
	entry.Bundle = bundle
	isObject := func(name string) bool { return strings.HasPrefix(string(special[name]), "{") }
	isPlain := !isObject("resources") && !isObject("slice")
	for _, name := range []string{"resources", "slice", "count"} {
		raw, given := special[name]
		switch at := path.Key(name); {
		case !given:
		case name == "slice" && isObject(name):
			entry.Slice = d.slice(at, raw)
		case name == "resources" && isObject(name):
			d.nested(raw, func(inner *decoder) {
				more, _ := inner.bundle(at)
				entry.Bundle.Add(more)
			})
		case name == "count" && !isPlain:
			entry.Count = d.count(at, raw)
		default:
			d.nested(raw, func(inner *decoder) {
				if amount, _ := inner.amount(at); amount > 0 {
					entry.Bundle[name] = amount
				}
			})
		}
	}
	return entry, nil
}

// slice decodes a slice requirement and records its fault.
func (d *decoder) slice(path fieldpath.Path, raw json.RawMessage) *raydemand.SliceRequirement {
	slice, err := raydemand.ParseSliceRequirement(raw)
	var bad *raydemand.SliceError
	if errors.As(err, &bad) {
		if bad.Field != "" {
			path = path.Key(bad.Field)
		}
		d.fault(path, bad.Value, bad.Want)
	}
	return slice
}

func (d *decoder) count(path fieldpath.Path, raw json.RawMessage) int64 {
	var count int64
	if err := json.Unmarshal(raw, &count); err != nil || count < 1 || count > maxCPUs {
		d.fault(path, string(raw), fmt.Sprintf("a whole number from 1 to %d", maxCPUs))
		return 1
	}
	return count
}

func (d *decoder) bundle(path fieldpath.Path) (raydemand.Bundle, error) {
	return d.bundleWith(path, func(string) (bool, error) { return false, nil })
}

// bundleWith decodes a bundle. It asks special first for each member, which reports whether it has decoded the value.
func (d *decoder) bundleWith(path fieldpath.Path, special func(name string) (bool, error)) (raydemand.Bundle, error) {
	bundle, names := raydemand.Bundle{}, 0
	err := d.object(path, func(name string, at fieldpath.Path) error {
		if names++; names == d.maxResources+1 {
			d.fault(path, "more", fmt.Sprintf("at most %d resources", d.maxResources))
		}
		if names > d.maxResources {
			return d.skip()
		}
		if done, err := special(name); done || err != nil {
			return err
		}
		if !isName(name) {
			return d.badName(path, name, "a resource name")
		}
		d.text += utf8.RuneCountInString(name)
		amount, err := d.amount(at)
		if amount > 0 {
			bundle[name] = amount
		}
		return err
	})
	return bundle, err
}
