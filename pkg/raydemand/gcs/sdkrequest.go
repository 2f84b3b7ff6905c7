package gcs

import (
	"encoding/json"
	"fmt"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// maxSDKRequest is the maximum size in bytes of the request of a v1 head. It allows 50,000 bundles of 20 bytes.
const maxSDKRequest = 1 << 20

// sdkRequest decodes the value of the KV key in which a v1 head stores request_resources: a JSON list with one element
// for each unit. The elements are plain resource maps, or (Ray 2.50 to 2.5x, ray #61673) objects with resources and
// label_selector. A missing key and [] mean no request (docs/reference/facts.md#where-request_resources-is-kept).
func (d *decoder) sdkRequest(text []byte) []raydemand.Request {
	const field = "autoscaler_resource_request"
	if len(text) == 0 {
		return nil
	}
	if len(text) > maxSDKRequest {
		d.badValue("", field, fmt.Sprintf("%d bytes", len(text)), "request_resources of Ray's SDK is not honoured")
		return nil
	}
	var elements []json.RawMessage
	if err := json.Unmarshal(text, &elements); err != nil {
		d.badValue("", field, err.Error(), "request_resources of Ray's SDK is not honoured")
		return nil
	}
	var merged merger
	for i, element := range elements {
		request, err := sdkElement(element)
		if err != nil {
			d.badValue("", fmt.Sprintf("%s[%d]", field, i), err.Error(), "the entry is left out")
			continue
		}
		if !request.Bundle.IsZero() {
			merged.add(request)
		}
	}
	return merged.sorted()
}

func sdkElement(text []byte) (raydemand.Request, error) {
	request := raydemand.Request{Count: 1}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return request, err
	}
	// The values of a plain map are numbers. So an object under "resources" identifies the other form, even if a custom
	// resource has that name.
	var object struct {
		Resources raydemand.Bundle   `json:"resources"`
		Selector  raydemand.Selector `json:"label_selector"`
	}
	if raw := fields["resources"]; len(raw) > 0 && raw[0] == '{' {
		if err := json.Unmarshal(text, &object); err != nil {
			return request, err
		}
	} else if err := json.Unmarshal(text, &object.Resources); err != nil {
		return request, err
	}
	request.Bundle = make(raydemand.Bundle, len(object.Resources))
	for name, amount := range object.Resources {
		if amount < 0 {
			return request, fmt.Errorf("resource %q is %s: must not be negative", name, amount)
		}
		if amount > 0 {
			request.Bundle[name] = amount
		}
	}
	if len(object.Selector) > 0 {
		request.Selectors = []raydemand.Selector{object.Selector}
	}
	return request, nil
}
