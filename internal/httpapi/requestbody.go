package httpapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Limits of one request_resources call; api/openapi.yaml repeats them.
const (
	maxBody      = 512 << 10
	maxCPUs      = 1_000_000
	maxBundles   = 10_000
	maxResources = 100 // names in one bundle, labels in one selector
	// Characters of a name, and of a label's expression.
	maxName       = 256
	maxExpression = 1024
)

// decodeRequest reads a body: an object, or a bare array of bundles. Nothing at all is a request for nothing.
func decodeRequest(body []byte) (apiv1.RequestResources, error) {
	var read apiv1.RequestResources
	if !utf8.Valid(body) {
		return read, invalid([]apiv1.FieldError{{Value: "bytes that are not UTF-8", Expected: "JSON in UTF-8"}})
	}
	if strings.TrimSpace(string(body)) == "" {
		return read, nil
	}
	d := newDecoder(body)
	selectorsGiven := false
	err := d.requestBody(&read, &selectorsGiven)
	if err == nil {
		d.end()
		if selectorsGiven && len(d.faults) == 0 && len(read.BundleLabelSelectors) != len(read.Bundles) {
			d.fault("bundle_label_selectors", fmt.Sprintf("%d selectors", len(read.BundleLabelSelectors)),
				fmt.Sprintf("one selector for each of the %d bundles", len(read.Bundles)))
		}
	}
	all := read.NumCPUs
	for _, bundle := range read.Bundles {
		all += bundle.Count
	}
	if all > maxCPUs && len(d.faults) == 0 {
		d.fault("num_cpus", fmt.Sprintf("%d with the bundles", all), fmt.Sprintf("at most %d together with the bundles", maxCPUs))
	}
	if len(d.faults) > 0 {
		return apiv1.RequestResources{}, invalid(d.faults)
	}
	return read, nil
}

func (d *decoder) requestBody(read *apiv1.RequestResources, selectorsGiven *bool) error {
	bundle := func(path string) error {
		b, err := d.asked(path)
		read.Bundles = append(read.Bundles, b)
		return err
	}
	token, err := d.token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('['):
		return d.elements("bundles", maxBundles, bundle)
	case json.Delim('{'):
	default:
		return d.unexpected("", token, "an object with num_cpus, bundles and bundle_label_selectors")
	}
	return d.members("", func(name string) error {
		switch name {
		case "num_cpus":
			return d.cpus(&read.NumCPUs)
		case "bundles":
			return d.arrayOrNull(name, maxBundles, bundle)
		case "bundle_label_selectors":
			return d.arrayOrNull(name, maxBundles, func(path string) error {
				*selectorsGiven = true
				s, err := d.selector(path)
				read.BundleLabelSelectors = append(read.BundleLabelSelectors, s)
				return err
			})
		default:
			d.fault(shorten(name), "", "one of num_cpus, bundles, bundle_label_selectors")
			return d.skip()
		}
	})
}

// cpus reads num_cpus. 4.0 is a whole number too: JSON does not tell the two apart.
func (d *decoder) cpus(into *int64) error {
	const expected = "a whole number from 0 to 1000000"
	token, err := d.token()
	if err != nil || token == nil {
		return err
	}
	number, ok := token.(json.Number)
	if !ok {
		return d.unexpected("num_cpus", token, expected)
	}
	amount, err := raydemand.ParseAmount(number.String())
	if err != nil || amount < 0 || amount%raydemand.One != 0 || amount > raydemand.Whole(maxCPUs) {
		d.fault("num_cpus", number.String(), expected)
		return nil
	}
	*into = int64(amount / raydemand.One)
	return nil
}

func (d *decoder) bundle(path string) (raydemand.Bundle, error) {
	return d.bundleWith(path, func(string) (bool, error) { return false, nil })
}

// bundleWith reads a bundle; special is asked first for each member, and says whether it has read its value.
func (d *decoder) bundleWith(path string, special func(name string) (bool, error)) (raydemand.Bundle, error) {
	bundle, names := raydemand.Bundle{}, 0
	err := d.object(path, func(name string) error {
		if names++; names == d.maxResources+1 {
			d.fault(path, "more", fmt.Sprintf("at most %d resources", d.maxResources))
		}
		if names > d.maxResources {
			return d.skip()
		}
		if read, err := special(name); read || err != nil {
			return err
		}
		if !isName(name) {
			d.fault(path, fmt.Sprintf("%q", shorten(name)), fmt.Sprintf("a resource name: 1 to %d printable characters, no space around it", maxName))
			return d.skip()
		}
		amount, err := d.amount(join(path, name))
		if amount > 0 {
			bundle[name] = amount
		}
		return err
	})
	return bundle, err
}

// maxAmount is the most that a plan counts of one resource; more would be told as another figure than was asked for.
const maxAmount = 100 << 40 * raydemand.One

var amountWant = "a number of at most " + maxAmount.String()

// amount reads a quantity. One that Ray's precision would make 0 is refused: it would be a request for nothing.
func (d *decoder) amount(path string) (raydemand.Amount, error) {
	token, err := d.token()
	if err != nil {
		return 0, err
	}
	number, ok := token.(json.Number)
	if !ok {
		return 0, d.unexpected(path, token, "a number of at least 0")
	}
	text := number.String()
	amount, err := raydemand.ParseAmount(text)
	switch {
	case err != nil:
		d.fault(path, text, amountWant)
	case amount > maxAmount:
		d.fault(path, text, amountWant)
	case amount < 0 || strings.HasPrefix(text, "-") && isPositiveDigits(text[1:]):
		d.fault(path, text, "a number of at least 0")
	case isPositiveDigits(text) && !atLeastPrecision(text):
		d.fault(path, text, "0, or at least 0.0001, the precision of Ray's amounts")
	default:
		return amount, nil
	}
	return 0, nil
}

// atLeastPrecision compares before anything is rounded, as the CRD does.
func atLeastPrecision(text string) bool {
	f, err := strconv.ParseFloat(text, 64)
	return err == nil && f >= raydemand.Amount(1).Float()
}

// isPositiveDigits reports whether the mantissa of a JSON number without sign has a digit other than 0.
func isPositiveDigits(text string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(text), "e")
	return strings.ContainsAny(mantissa, "123456789")
}

func (d *decoder) selector(path string) (raydemand.Selector, error) {
	expressions, labels := map[string]string{}, 0
	err := d.object(path, func(key string) error {
		if labels++; labels == d.maxLabels+1 {
			d.fault(path, "more", fmt.Sprintf("at most %d labels", d.maxLabels))
		}
		if labels > d.maxLabels {
			return d.skip()
		}
		if !isName(key) {
			d.fault(path, fmt.Sprintf("%q", shorten(key)), fmt.Sprintf("a label key: 1 to %d printable characters, no space around it", maxName))
			return d.skip()
		}
		token, err := d.token()
		if err != nil {
			return err
		}
		expression, ok := token.(string)
		if !ok {
			return d.unexpected(join(path, key), token, "an expression: v, !v, in(a,b) or !in(a,b)")
		}
		_, err = raydemand.ParseSelector(map[string]string{key: expression})
		if err != nil || utf8.RuneCountInString(expression) > maxExpression || !isPrintable(expression) {
			d.fault(join(path, key), fmt.Sprintf("%q", shorten(expression)), "an expression: v, !v, in(a,b) or !in(a,b)")
			return nil
		}
		expressions[key] = expression
		return nil
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

func isName(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= maxName && strings.TrimSpace(name) == name && isPrintable(name)
}

func isPrintable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// bundlesOf are the amounts of each bundle.
func bundlesOf(r apiv1.RequestResources) []raydemand.Bundle {
	bundles := make([]raydemand.Bundle, len(r.Bundles))
	for i, asked := range r.Bundles {
		bundles[i] = asked.Bundle
	}
	return bundles
}

func invalid(faults []apiv1.FieldError) error {
	first := faults[0]
	detail := "want " + first.Expected
	if first.Value != "" {
		detail += ", is " + first.Value
	}
	if first.Field != "" {
		detail = first.Field + ": " + detail
	}
	if more := len(faults) - 1; more > 0 {
		detail += fmt.Sprintf(" (and %d more)", more)
	}
	return &problem{kind: invalidRequest, detail: detail, errors: faults}
}
