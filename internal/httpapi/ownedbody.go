package httpapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Limits of a request of an owner; api/openapi.yaml and the CRD repeat them.
const (
	maxOwnedBundles   = 1000
	maxOwnedCount     = 10_000
	maxOwnedSelectors = 8
	maxOwnedResources = 32
	maxOwnedLabels    = 16
	maxLeaseSeconds   = 31_536_000
)

// decodeSpec reads the body of a PUT. Every bad field is named.
func decodeSpec(body []byte) (apiv1.RequestSpec, error) {
	var spec apiv1.RequestSpec
	if !utf8.Valid(body) {
		return spec, invalid([]apiv1.FieldError{{Value: "bytes that are not UTF-8", Expected: "JSON in UTF-8"}})
	}
	d := newDecoder(body)
	d.maxResources, d.maxLabels = maxOwnedResources, maxOwnedLabels
	if err := d.object("", func(name string) error { return d.specField(&spec, name) }); err == nil {
		d.end()
		d.checkSpec(&spec)
	}
	if len(d.faults) > 0 {
		return apiv1.RequestSpec{}, invalid(d.faults)
	}
	return spec, nil
}

// bundlesOfSpec are the amounts of each bundle.
func bundlesOfSpec(s *apiv1.RequestSpec) []raydemand.Bundle {
	bundles := make([]raydemand.Bundle, len(s.Bundles))
	for i, request := range s.Bundles {
		bundles[i] = request.Bundle
	}
	return bundles
}

func (d *decoder) specField(spec *apiv1.RequestSpec, name string) error {
	switch name {
	case "priority":
		n, err := d.whole(name, -1<<31, 1<<31-1)
		spec.Priority = int32(n)
		return err
	case "leaseSeconds":
		n, err := d.whole(name, 1, maxLeaseSeconds)
		spec.LeaseSeconds = int32(n)
		return err
	case "allOrNothing":
		return d.boolean(name, &spec.AllOrNothing)
	case "holdUntilDeleted":
		return d.boolean(name, &spec.HoldUntilDeleted)
	case "bundles":
		return d.array(name, maxOwnedBundles, func(path string) error {
			request, err := d.ownedBundle(path)
			spec.Bundles = append(spec.Bundles, request)
			return err
		})
	}
	d.fault(shorten(name), "", "one of priority, allOrNothing, leaseSeconds, holdUntilDeleted, bundles")
	return d.skip()
}

// checkSpec checks what several fields say together.
func (d *decoder) checkSpec(spec *apiv1.RequestSpec) {
	if len(d.faults) > 0 {
		return
	}
	if (spec.LeaseSeconds > 0) == spec.HoldUntilDeleted {
		d.fault("leaseSeconds", "", "one of leaseSeconds and holdUntilDeleted: true")
	}
	if len(spec.Bundles) == 0 {
		d.fault("bundles", "", "at least one bundle")
	}
	var all int64
	for i, request := range spec.Bundles {
		all += request.Count
		if request.Bundle.IsZero() {
			d.fault("bundles["+strconv.Itoa(i)+"]", "", "resources above 0, or a slice")
		}
	}
	if all > maxOwnedCount {
		d.fault("bundles", fmt.Sprintf("%d of all counts together", all), fmt.Sprintf("at most %d", maxOwnedCount))
	}
}

func (d *decoder) ownedBundle(path string) (raydemand.Request, error) {
	request := raydemand.Request{Bundle: raydemand.Bundle{}, Count: 1}
	err := d.object(path, func(name string) error {
		var err error
		switch at := join(path, name); name {
		case "resources":
			request.Bundle, err = d.bundle(at)
		case "count":
			request.Count, err = d.whole(at, 1, maxOwnedCount)
		case "labelSelectors":
			err = d.array(at, maxOwnedSelectors, func(path string) error {
				selector, err := d.selector(path)
				request.Selectors = append(request.Selectors, selector)
				return err
			})
		case "slice":
			var raw json.RawMessage
			if raw, err = d.raw(); err == nil {
				request.Slice = d.wish(at, raw)
			}
		default:
			d.fault(at, "", "one of resources, count, labelSelectors, slice")
			err = d.skip()
		}
		return err
	})
	return request.Sliced(), err
}

// whole reads a whole number from least to most; 4.0 is one too.
func (d *decoder) whole(path string, least, most int64) (int64, error) {
	expected := fmt.Sprintf("a whole number from %d to %d", least, most)
	token, err := d.token()
	if err != nil {
		return 0, err
	}
	number, ok := token.(json.Number)
	if !ok {
		return 0, d.unexpected(path, token, expected)
	}
	amount, err := raydemand.ParseAmount(number.String())
	if n := int64(amount / raydemand.One); err == nil && amount%raydemand.One == 0 && n >= least && n <= most {
		return n, nil
	}
	d.fault(path, shorten(number.String()), expected)
	return 0, nil
}

func (d *decoder) boolean(path string, into *bool) error {
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
