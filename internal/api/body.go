package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxBody is the limit of a body in bytes; api/openapi.yaml repeats it.
const maxBody = 512 << 10

// readJSON reads a JSON body. A call without a body needs no content type.
func readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	// A compressed body can have any size, so it is not read at all.
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		detail := fmt.Sprintf("Content-Encoding is %q; send the body uncompressed", shorten(encoding))
		return nil, &problem{Kind: kindMediaType, Detail: detail}
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	if declared := r.Header.Get("Content-Type"); len(body) > 0 || declared != "" {
		// This check also refuses forms, which a foreign web page can send without asking first.
		if got, _, err := mime.ParseMediaType(declared); err != nil || got != "application/json" {
			detail := fmt.Sprintf("Content-Type is %q, want application/json", shorten(declared))
			return nil, &problem{Kind: kindMediaType, Detail: detail}
		}
	}
	return body, nil
}

// readBody reads a body of any type.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	connection := http.NewResponseController(w)
	// A canceled call does not wait for the rest of its body.
	defer context.AfterFunc(r.Context(), func() { _ = connection.SetReadDeadline(time.Now()) })()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		detail := fmt.Sprintf("the body is larger than %d bytes", over.Limit)
		return nil, &problem{Kind: kindTooLarge, Detail: detail}
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close") // the start of the next call is unknown
		detail := fmt.Sprintf("the body did not arrive within %v", readTimeout)
		return nil, &problem{Kind: kindSlowBody, Detail: detail}
	case err != nil:
		return nil, &problem{Kind: kindInvalidRequest, Detail: "the body ended early: " + err.Error()}
	}
	return body, nil
}

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
	return invalidField("", "bytes that are not UTF-8", "JSON in UTF-8")
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
