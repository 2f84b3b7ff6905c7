package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/fieldpath"
)

// Limits of one request_resources call; api/openapi.yaml repeats them.
const (
	maxCPUs      = 1_000_000
	maxBundles   = 10_000
	maxResources = 100 // names in one bundle, labels in one selector
	// maxName is in characters of a resource name or label key, maxExpression in those of a label expression.
	maxName       = 256
	maxExpression = 1024
)

// DecodeRequest decodes the body of request_resources: an object, or a list of bundles alone. An empty body requests
// nothing.
func DecodeRequest(body []byte) (apiv1.RequestResources, error) {
	var request apiv1.RequestResources
	if err := checkUTF8(body); err != nil || strings.TrimSpace(string(body)) == "" {
		return request, err
	}
	d := newDecoder(body)
	hasSelectors := false
	if err := d.request(&request, &hasSelectors); err == nil {
		d.end()
	}
	if len(d.faults) == 0 {
		d.checkRequest(&request, hasSelectors)
	}
	if err := d.problem(); err != nil {
		return apiv1.RequestResources{}, err
	}
	return request, nil
}

func checkUTF8(body []byte) error {
	if utf8.Valid(body) {
		return nil
	}
	return invalidFields([]apiv1.FieldError{{Value: "bytes that are not UTF-8", Expected: "JSON in UTF-8"}})
}

func (d *decoder) request(request *apiv1.RequestResources, hasSelectors *bool) error {
	bundle := func(path fieldpath.Path) error {
		b, err := d.requestedBundle(path)
		request.Bundles = append(request.Bundles, b)
		return err
	}
	token, err := d.token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('['):
		return d.elements(fieldpath.NewPath("bundles"), maxBundles, bundle)
	case json.Delim('{'):
	default:
		return d.unexpected(fieldpath.Path{}, token, "an object with num_cpus, bundles and bundle_label_selectors")
	}
	return d.members(fieldpath.Path{}, func(name string, path fieldpath.Path) error {
		switch name {
		case "num_cpus":
			return d.cpus(path, &request.NumCPUs)
		case "bundles":
			return d.listOrNull(path, maxBundles, bundle)
		case "bundle_label_selectors":
			return d.listOrNull(path, maxBundles, func(path fieldpath.Path) error {
				*hasSelectors = true
				s, err := d.selector(path)
				request.BundleLabelSelectors = append(request.BundleLabelSelectors, s)
				return err
			})
		default:
			return d.unknown(path, "num_cpus", "bundles", "bundle_label_selectors")
		}
	})
}

// cpus decodes num_cpus, which may be null.
func (d *decoder) cpus(path fieldpath.Path, into *int64) error {
	token, err := d.token()
	if err != nil || token == nil {
		return err
	}
	*into, err = d.integerFrom(token, path, 0, maxCPUs)
	return err
}

// checkRequest checks rules over several fields.
func (d *decoder) checkRequest(request *apiv1.RequestResources, hasSelectors bool) {
	bundles, selectors := len(request.Bundles), len(request.BundleLabelSelectors)
	if hasSelectors && selectors != bundles {
		d.fault(fieldpath.NewPath("bundle_label_selectors"), fmt.Sprintf("%d selectors", selectors),
			fmt.Sprintf("one selector for each of the %d bundles", bundles))
		return
	}
	all := request.NumCPUs
	for _, bundle := range request.Bundles {
		all += bundle.Count
	}
	if all > maxCPUs {
		d.fault(fieldpath.NewPath("num_cpus"), fmt.Sprintf("%d with the bundles", all),
			fmt.Sprintf("at most %d together with the bundles", maxCPUs))
	}
}
