package apiv1

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Merged returns the requests of the call: num_cpus first, then the bundles in order of first appearance. It counts
// equal ones, with equal bundle, slice and selector, as ray.autoscaler.sdk.request_resources does.
func (r RequestResources) Merged() []raydemand.Request {
	merged, index := []raydemand.Request{}, map[string]int{}
	add := func(request raydemand.Request, selector raydemand.Selector) {
		request = request.Sliced()
		if request.Bundle.IsZero() || request.Count == 0 {
			return
		}
		if len(selector) > 0 {
			request.Selectors = []raydemand.Selector{selector}
		}
		key := pairKey(request, selector)
		if at, ok := index[key]; ok {
			merged[at].Count += request.Count
			return
		}
		index[key] = len(merged)
		merged = append(merged, request)
	}
	add(raydemand.Request{Bundle: raydemand.Bundle{raydemand.CPU: raydemand.One}, Count: r.NumCPUs}, nil)
	for i, bundle := range r.Bundles {
		var selector raydemand.Selector
		if i < len(r.BundleLabelSelectors) {
			selector = r.BundleLabelSelectors[i]
		}
		add(raydemand.Request{Bundle: bundle.Bundle, Count: max(bundle.Count, 1), Slice: bundle.Slice}, selector)
	}
	return merged
}

// pairKey is equal only for equal bundles, slices and selectors. It quotes names, so that no name can end another.
func pairKey(request raydemand.Request, selector raydemand.Selector) string {
	var key strings.Builder
	for _, name := range request.Bundle.Names() {
		fmt.Fprintf(&key, "%q:%d,", name, request.Bundle[name])
	}
	if slice := request.Slice; slice != nil {
		fmt.Fprintf(&key, "/%d %v %s", slice.Memory, slice.ComputeFraction, slice.Isolation)
	}
	for _, c := range selector {
		fmt.Fprintf(&key, "|%q %d %q", c.Key, c.Op, c.Values)
	}
	return key.String()
}
