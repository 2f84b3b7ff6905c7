package apiv1

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
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
		add(bundle, selector)
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

// NodepoolsReport describes nodes and pools; nil means unknown.
type NodepoolsReport struct {
	Nodes []sharing.GPUs `json:"nodes"`
	Pools []landing.Pool `json:"pools"`
	// Notes say what Heliostat could not read.
	Notes []string `json:"notes"`
}

// Error makes Problem an error, which the client returns.
func (p *Problem) Error() string {
	return fmt.Sprintf("%d: %s", p.Status, cmp.Or(p.Detail, p.Title))
}

// List returns items, or an empty list for nil: in JSON, lists are never null.
func List[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// Time returns t in UTC, or nil for the zero time, which is null in JSON.
func Time(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// UnmetOf returns the demand that a plan does not serve.
func UnmetOf(plan planner.Plan) []Unmet {
	unmet := []Unmet{}
	add := func(kind UnmetKind, requests []planner.UnmetRequest) {
		for _, r := range requests {
			unmet = append(unmet, Unmet{Kind: kind, AskedBy: r.AskedBy, OverREST: r.OverREST, Count: r.Count,
				Moving: r.Moving, Resources: r.Bundle, LabelSelectors: r.Selectors, Slice: r.Slice, Reason: r.Reason})
		}
	}
	add(UnmetKindRequest, plan.InfeasibleRequests)
	for _, g := range plan.InfeasibleGangRequests {
		unmet = append(unmet, Unmet{Kind: UnmetKindGang, Count: 1, Gang: &g.Gang, Reason: g.Reason})
	}
	add(UnmetKindRequestResources, plan.InfeasibleRequestResources)
	return unmet
}
