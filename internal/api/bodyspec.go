package api

import (
	"encoding/json"
	"fmt"
	"math"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Limits of a request with an owner beside those of package raydemand; api/openapi.yaml and the CRD repeat them.
const (
	maxOwnedCount   = 10_000
	maxLeaseSeconds = 31_536_000
)

// DecodeSpec decodes the body that creates or replaces a request with an owner.
func DecodeSpec(body []byte) (apiv1.RequestSpec, error) {
	var spec apiv1.RequestSpec
	if err := checkUTF8(body); err != nil {
		return spec, err
	}
	d := newDecoder(body)
	d.maxResources, d.maxLabels = raydemand.MaxOwnedResources, raydemand.MaxOwnedLabels
	err := d.object(
		fieldpath.Path{},
		func(name string, path fieldpath.Path) error { return d.specField(&spec, name, path) },
	)
	if err == nil {
		d.end()
	}
	if len(d.faults) == 0 {
		d.checkSpec(&spec)
	}
	if err := d.problem(); err != nil {
		return apiv1.RequestSpec{}, err
	}
	return spec, nil
}

func (d *decoder) specField(spec *apiv1.RequestSpec, name string, path fieldpath.Path) error {
	switch name {
	case "priority":
		n, err := d.integer(path, math.MinInt32, math.MaxInt32)
		spec.Priority = int32(n)
		return err
	case "leaseSeconds":
		n, err := d.integer(path, 1, maxLeaseSeconds)
		spec.LeaseSeconds = int32(n)
		return err
	case "allOrNothing":
		return d.boolean(path, &spec.AllOrNothing)
	case "holdUntilDeleted":
		return d.boolean(path, &spec.HoldUntilDeleted)
	case "bundles":
		return d.list(path, raydemand.MaxOwnedBundles, func(path fieldpath.Path) error {
			request, err := d.ownedBundle(path)
			spec.Bundles = append(spec.Bundles, request)
			return err
		})
	}
	return d.unknown(path, "priority", "allOrNothing", "leaseSeconds", "holdUntilDeleted", "bundles")
}

// checkSpec checks rules over several fields.
func (d *decoder) checkSpec(spec *apiv1.RequestSpec) {
	bundles := fieldpath.NewPath("bundles")
	if (spec.LeaseSeconds > 0) == spec.HoldUntilDeleted {
		d.fault(fieldpath.NewPath("leaseSeconds"), "", "one of leaseSeconds and holdUntilDeleted: true")
	}
	if len(spec.Bundles) == 0 {
		d.fault(bundles, "", "at least one bundle")
	}
	var all int64
	for i, request := range spec.Bundles {
		all += request.Count
		if request.Bundle.IsZero() {
			d.fault(bundles.Index(i), "", "resources above 0, or a slice")
		}
	}
	if all > maxOwnedCount {
		d.fault(bundles, fmt.Sprintf("%d, the sum of all counts", all), fmt.Sprintf("at most %d", maxOwnedCount))
	}
	if d.values > raydemand.MaxOwnedValues {
		d.fault(bundles, fmt.Sprintf("%d values in all labelSelectors", d.values),
			fmt.Sprintf("at most %d; in(a,b) has two", raydemand.MaxOwnedValues))
	}
	if d.text > raydemand.MaxOwnedText {
		d.fault(bundles, fmt.Sprintf("%d characters of resource names, labels and expressions", d.text),
			fmt.Sprintf("at most %d", raydemand.MaxOwnedText))
	}
}

func (d *decoder) ownedBundle(path fieldpath.Path) (raydemand.Request, error) {
	request := raydemand.Request{Bundle: raydemand.Bundle{}, Count: 1}
	err := d.object(path, func(name string, at fieldpath.Path) (err error) {
		switch name {
		case "resources":
			request.Bundle, err = d.bundle(at)
		case "count":
			request.Count, err = d.integer(at, 1, maxOwnedCount)
		case "labelSelectors":
			err = d.list(at, raydemand.MaxOwnedSelectors, func(path fieldpath.Path) error {
				selector, err := d.selector(path)
				request.Selectors = append(request.Selectors, selector)
				return err
			})
		case "slice":
			var raw json.RawMessage
			if raw, err = d.raw(); err == nil {
				request.Slice = d.slice(at, raw)
			}
		default:
			err = d.unknown(at, "resources", "count", "labelSelectors", "slice")
		}
		return err
	})
	return request.Sliced(), err
}
