package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
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

// body is the JSON body of a call that requests resources.
type body struct {
	fieldpath.JSON
	doc *fieldpath.Document
	// owned: bundles have resources, slice, count and labelSelectors alone, and the limits of package raydemand.
	owned bool
}

// newBody reads a text. A list alone is the member of that name of an object, unless the name is empty.
func newBody(text []byte, list string) (*body, error) {
	if !utf8.Valid(text) {
		return nil, invalidField("", "bytes that are not UTF-8", "JSON in UTF-8")
	}
	var raw json.RawMessage
	value := json.NewDecoder(bytes.NewReader(text))
	if err := value.Decode(&raw); err != nil {
		at, near := int64(len(text)), "end of body"
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at, near = syntax.Offset, string(bytes.TrimSpace(text[syntax.Offset:]))
		}
		return nil, invalidField("", shorten(near), fmt.Sprintf("JSON, at byte %d: %v", at, err))
	}
	if rest := bytes.TrimSpace(text[value.InputOffset():]); len(rest) > 0 {
		return nil, invalidField("", shorten(string(rest)), "nothing after the JSON value")
	}
	if raw[0] == '[' && list != "" {
		raw = fmt.Appendf(nil, "{%q:%s}", list, raw)
	}
	if path, twice := fieldpath.RepeatedKey(raw); twice {
		return nil, invalidField(fieldpath.Excerpt(path.String(), maxFieldPath), "", "a field that appears once")
	}
	in, doc := fieldpath.ReadAll(raw, maxFields)
	return &body{JSON: in, doc: doc}, nil
}

// maxFieldPath is how many bytes of the path of a field an answer shows.
const maxFieldPath = 2 * maxName

// problem returns the problem of all faults and unknown fields, or nil.
func (b *body) problem() error {
	var fields []apiv1.FieldError
	add := func(path fieldpath.Path, value, want string) {
		fields = append(fields, apiv1.FieldError{
			Field: fieldpath.Excerpt(path.String(), maxFieldPath), Value: shorten(value), Expected: want,
		})
	}
	for _, f := range b.doc.Faults() {
		add(f.Path, f.Value, f.Want)
	}
	unknown, _ := b.doc.Unknown()
	for _, u := range unknown {
		add(u.Path, "", u.Want())
	}
	if len(fields) == 0 {
		return nil
	}
	return invalidFields(fields[:min(len(fields), maxFields)])
}

// DecodeRequest decodes the body of request_resources: an object, or a list of bundles alone. An empty body requests
// nothing.
func DecodeRequest(text []byte) (request apiv1.RequestResources, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return request, nil
	}
	b, err := newBody(text, "bundles")
	if err != nil {
		return request, err
	}
	if !b.IsObject() {
		b.JSON.Fail("an object with num_cpus, bundles and bundle_label_selectors")
		return request, b.problem()
	}
	members := b.Members()
	request.NumCPUs = whole(members.Pick("num_cpus"), 0, maxCPUs)
	for _, each := range b.elements(members.Pick("bundles"), maxBundles) {
		request.Bundles = append(request.Bundles, b.bundle(each, maxCPUs))
	}
	for _, each := range b.elements(members.Pick("bundle_label_selectors"), maxBundles) {
		request.BundleLabelSelectors = append(request.BundleLabelSelectors, b.selector(each))
	}
	members.Done()
	if err := b.problem(); err != nil {
		return apiv1.RequestResources{}, err
	}
	b.checkRequest(&request)
	return request, b.problem()
}

// checkRequest checks rules over several fields.
func (b *body) checkRequest(request *apiv1.RequestResources) {
	bundles, selectors := len(request.Bundles), len(request.BundleLabelSelectors)
	if selectors > 0 && selectors != bundles {
		b.FailBelow("bundle_label_selectors", fmt.Sprintf("%d selectors", selectors),
			fmt.Sprintf("one selector for each of the %d bundles", bundles))
		return
	}
	all := request.NumCPUs
	for _, bundle := range request.Bundles {
		all += bundle.Count
	}
	if all > maxCPUs {
		b.FailBelow("num_cpus", fmt.Sprintf("%d with the bundles", all),
			fmt.Sprintf("at most %d together with the bundles", maxCPUs))
	}
}

// Limits of a request with an owner beside those of package raydemand; api/openapi.yaml and the CRD repeat them.
const (
	maxOwnedCount   = 10_000
	maxLeaseSeconds = 31_536_000
)

// DecodeSpec decodes the body that creates or replaces a request with an owner.
func DecodeSpec(text []byte) (spec apiv1.RequestSpec, err error) {
	b, err := newBody(text, "")
	if err != nil {
		return spec, err
	}
	b.owned = true
	members := b.Members()
	if number := members.Pick("priority"); there(number, "a whole number") {
		spec.Priority = int32(whole(number, math.MinInt32, math.MaxInt32))
	}
	spec.AllOrNothing = truth(members.Pick("allOrNothing"))
	if number := members.Pick("leaseSeconds"); there(number, "a whole number") {
		spec.LeaseSeconds = int32(whole(number, 1, maxLeaseSeconds))
	}
	spec.HoldUntilDeleted = truth(members.Pick("holdUntilDeleted"))
	if bundles := members.Pick("bundles"); there(bundles, aList) {
		for _, each := range b.elements(bundles, raydemand.MaxOwnedBundles) {
			spec.Bundles = append(spec.Bundles, b.bundle(each, maxOwnedCount))
		}
	}
	members.Done()
	if err := b.problem(); err != nil {
		return apiv1.RequestSpec{}, err
	}
	b.checkSpec(&spec)
	return spec, b.problem()
}

// checkSpec checks rules over several fields.
func (b *body) checkSpec(spec *apiv1.RequestSpec) {
	if (spec.LeaseSeconds > 0) == spec.HoldUntilDeleted {
		b.FailBelow("leaseSeconds", "", "one of leaseSeconds and holdUntilDeleted: true")
	}
	if len(spec.Bundles) == 0 {
		b.FailBelow("bundles", "", "at least one bundle")
	}
	var all int64
	for i, request := range spec.Bundles {
		all += request.Count
		if request.Bundle.IsZero() {
			b.doc.Fail(fieldpath.Fault{
				Path: fieldpath.NewPath("bundles").Index(i), Want: "resources above 0, or a slice",
			})
		}
	}
	if all > maxOwnedCount {
		b.FailBelow("bundles", fmt.Sprintf("%d, the sum of all counts", all), fmt.Sprintf("at most %d", maxOwnedCount))
	}
}

const (
	anObject = "an object {…}"
	aList    = "a list […]"
)

// there reports whether there is a value; null is not what is wanted.
func there(in fieldpath.JSON, want string) bool {
	if in.Absent() && len(in.Raw()) > 0 {
		in.Fail(want)
	}
	return !in.Absent()
}

// isObject reports whether a value is an object; another one, and null, is a fault.
func isObject(in fieldpath.JSON) bool {
	if !in.IsObject() {
		in.Fail(anObject)
	}
	return in.IsObject()
}

// elements returns the elements of a list; none if there are too many.
func (b *body) elements(in fieldpath.JSON, limit int) []fieldpath.JSON {
	list := in.List()
	if len(list) > limit {
		b.doc.Fail(fieldpath.Fault{Path: in.Path(), Value: fmt.Sprintf("%d elements", len(list)),
			Want: fmt.Sprintf("at most %d elements", limit)})
		return nil
	}
	return list
}

// maxAmount is the largest amount of one resource that a plan can count. A larger one would come back as another
// number.
const maxAmount = 100 << 40 * raydemand.One

// amount decodes a quantity. It refuses one that Ray's precision would round to 0, because that would request nothing.
// It compares the number before anything rounds it, as the CRD does.
func amount(in fieldpath.JSON) raydemand.Amount {
	number, err := strconv.ParseFloat(string(in.Raw()), 64)
	amount, wrong := raydemand.ParseAmount(string(in.Raw()))
	if err != nil || wrong != nil || number < 0 || amount > maxAmount || number > 0 && number < 1e-4 {
		in.Fail("0, or a number from 0.0001 to " + maxAmount.String())
		return 0
	}
	return amount
}

// whole decodes a whole number from least to most; 0 if it is absent. 4.0 is one too: JSON has no other type for it.
func whole(in fieldpath.JSON, least, most int64) int64 {
	if in.Absent() {
		return 0
	}
	f, err := strconv.ParseFloat(string(in.Raw()), 64)
	if err != nil || f != math.Trunc(f) || f < float64(least) || f > float64(most) {
		in.Fail(fmt.Sprintf("a whole number from %d to %d", least, most))
		return 0
	}
	return int64(f)
}

func truth(in fieldpath.JSON) bool { return there(in, "true or false") && in.Flag() }

func (b *body) selector(in fieldpath.JSON) raydemand.Selector {
	const want = "an expression: v, !v, in(a,b) or !in(a,b)"
	if !isObject(in) {
		return nil
	}
	labels, _ := in.Named(anObject)
	if len(labels) > maxResources {
		in.FailBelow("", "more", fmt.Sprintf("at most %d labels", maxResources))
		return nil
	}
	expressions := map[string]string{}
	for _, each := range labels {
		key, expression := each.Name(), ""
		if !isName(key) {
			badName(in, key, "a label key")
			continue
		}
		if !there(each, want) || !each.Into(&expression, want) {
			continue
		}
		_, err := raydemand.ParseSelector(map[string]string{key: expression})
		if err != nil || utf8.RuneCountInString(expression) > maxExpression || !isPrintable(expression) {
			each.Fail(want)
			continue
		}
		expressions[key] = expression
	}
	selector, _ := raydemand.ParseSelector(expressions) // each of them can be parsed
	return selector
}

// badName reports a bad name in an object.
func badName(in fieldpath.JSON, name, what string) {
	in.FailBelow("", fmt.Sprintf("%q", shorten(name)),
		fmt.Sprintf("%s: 1 to %d printable characters, no space around it", what, maxName))
}

func isName(name string) bool {
	return name != "" && utf8.RuneCountInString(name) <= maxName && strings.TrimSpace(name) == name && isPrintable(name)
}

func isPrintable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// bundle decodes an entry of bundles, with a count up to most. In a plain request, its amounts can be beside slice and
// count, and resources, slice and count are Ray resources of these names where resources and slice are no objects.
func (b *body) bundle(in fieldpath.JSON, most int64) raydemand.Request {
	request := raydemand.Request{Bundle: raydemand.Bundle{}, Count: 1}
	if !isObject(in) {
		return request
	}
	members, special := in.Members(), []string{}
	isSpecial := func(member fieldpath.JSON) bool {
		is := member.IsObject() || b.owned && len(member.Raw()) > 0
		if is {
			special = append(special, member.Name())
		}
		return is
	}
	if resources := members.Pick("resources"); isSpecial(resources) && there(resources, anObject) {
		b.addAmounts(resources, request.Bundle)
	}
	count := members.Pick("count")
	labels := members.Pick("labelSelectors")
	if slice := members.Pick("slice"); isSpecial(slice) {
		request.Slice = sliceOf(slice)
	}
	if (b.owned || len(special) > 0) && members.Has("count") {
		special = append(special, "count")
		if there(count, fmt.Sprintf("a whole number from 1 to %d", most)) {
			request.Count = whole(count, 1, most)
		}
	}
	if !b.owned {
		b.addAmounts(in, request.Bundle, special...)
		return request
	}
	if isSpecial(labels) && there(labels, aList) {
		for _, each := range b.elements(labels, raydemand.MaxOwnedSelectors) {
			request.Selectors = append(request.Selectors, b.selector(each))
		}
	}
	members.Done()
	return request.Sliced()
}

func sliceOf(in fieldpath.JSON) *raydemand.SliceRequirement {
	slice, err := raydemand.ParseSliceRequirement(in.Raw())
	if bad, ok := errors.AsType[*raydemand.SliceError](err); ok {
		in.FailBelow(bad.Field, bad.Value, bad.Want)
	}
	return slice
}

// addAmounts adds the amounts of an object to a bundle, but for the special members.
func (b *body) addAmounts(in fieldpath.JSON, bundle raydemand.Bundle, special ...string) {
	members, _ := in.Named(anObject)
	if len(members) > maxResources {
		in.FailBelow("", "more", fmt.Sprintf("at most %d resources", maxResources))
		return
	}
	for _, each := range members {
		name := each.Name()
		if slices.Contains(special, name) {
			continue
		}
		if !isName(name) {
			badName(in, name, "a resource name")
			continue
		}
		if amount := amount(each); amount > 0 {
			bundle[name] = bundle[name].Plus(amount)
		}
	}
}
