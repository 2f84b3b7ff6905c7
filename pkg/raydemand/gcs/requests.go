package gcs

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// requests decodes shapes with their counts, merges equal requests, and sorts them. It compares requests with their
// selectors in canonical order, because Ray 2.49 and later send the values of in(a,b,c) in random order, with one entry
// for each order.
//
// It omits shapes with placement-group resources, because their bundles are listed as a gang or already placed. It also
// omits tasks that request no resources and have no selector, because they run on any node.
func (d *decoder) requests(field string, wire []*autoscalerpb.ResourceRequestByCount) []raydemand.Request {
	var merged merger
	for _, entry := range wire {
		if hasPlacementGroupResource(entry.GetRequest().GetResourcesBundle()) {
			continue
		}
		if entry.GetCount() <= 0 {
			d.badValue("", field+".count", fmt.Sprint(entry.GetCount()), "the entry is left out")
			continue
		}
		bundle, ok := d.bundle(field, entry.GetRequest())
		if !ok {
			continue
		}
		selectors, ok := d.selectors(field, entry.GetRequest().GetLabelSelectors())
		if !ok || (bundle.IsZero() && len(selectors) == 0) {
			continue
		}
		merged.add(raydemand.Request{Bundle: bundle, Count: entry.GetCount(), Selectors: selectors})
	}
	requests := merged.sorted()
	if len(requests) > maxShapes {
		d.cutDemand(field, fmt.Sprintf("%d shapes", len(requests)), fmt.Sprintf("only the first %d count", maxShapes))
		requests = requests[:maxShapes]
	}
	return requests
}

// bundle decodes amounts and drops zeros. One invalid amount makes the whole bundle invalid, because the task could not
// run where a smaller bundle fits.
func (d *decoder) bundle(field string, wire *autoscalerpb.ResourceRequest) (raydemand.Bundle, bool) {
	bundle := make(raydemand.Bundle, len(wire.GetResourcesBundle()))
	for _, name := range slices.Sorted(maps.Keys(wire.GetResourcesBundle())) {
		value := wire.GetResourcesBundle()[name]
		amount, err := raydemand.FromFloat(value)
		if err != nil || amount < 0 {
			d.badValue("", fmt.Sprintf("%s.resources_bundle[%q]", field, name), fmt.Sprint(value),
				"the entry is left out")
			return nil, false
		}
		if amount > 0 {
			bundle[name] = amount
		}
	}
	return bundle, true
}

// selectors decodes alternatives in order of preference. It returns nil if the first is empty: it matches any node, so
// the others are never used.
func (d *decoder) selectors(field string, wire []*raypb.LabelSelector) ([]raydemand.Selector, bool) {
	var selectors []raydemand.Selector
	for _, w := range wire {
		s, ok := d.selector(field, w)
		if !ok {
			return nil, false
		}
		if len(s) == 0 && len(selectors) == 0 {
			return nil, true
		}
		selectors = append(selectors, s)
	}
	return selectors, true
}

func (d *decoder) selector(field string, wire *raypb.LabelSelector) (raydemand.Selector, bool) {
	constraints := make([]raydemand.Constraint, 0, len(wire.GetLabelConstraints()))
	for _, c := range wire.GetLabelConstraints() {
		op := raydemand.Operator(c.GetOperator())
		if op != raydemand.In && op != raydemand.NotIn {
			d.badValue("", fmt.Sprintf("%s.label_selectors[%q].operator", field, c.GetLabelKey()), fmt.Sprint(int(op)),
				"the entry is left out")
			return nil, false
		}
		constraints = append(constraints,
			raydemand.Constraint{Key: c.GetLabelKey(), Op: op, Values: c.GetLabelValues()})
	}
	selector := raydemand.NewSelector(constraints...)
	if err := (*raydemand.ExpressionError)(nil); errors.As(selector.Check(), &err) {
		d.badValue("", fmt.Sprintf("%s.label_selectors[%q]", field, err.Key), fmt.Sprintf("%q", err.Expression),
			"the entry is left out")
		return nil, false
	}
	return selector, true
}

// merger adds the counts of equal requests.
type merger struct{ byKey map[string]raydemand.Request }

func (m *merger) add(r raydemand.Request) {
	if m.byKey == nil {
		m.byKey = map[string]raydemand.Request{}
	}
	key := requestKey(r)
	if before, ok := m.byKey[key]; ok {
		r.Count = before.Count + min(r.Count, math.MaxInt64-before.Count)
	}
	m.byKey[key] = r
}

func (m *merger) sorted() []raydemand.Request {
	sorted := make([]raydemand.Request, 0, len(m.byKey))
	for _, key := range slices.Sorted(maps.Keys(m.byKey)) {
		sorted = append(sorted, m.byKey[key])
	}
	return sorted
}

// requestKey returns a key that is unique to a request. It quotes all text, so names from the head cannot cause
// collisions.
func requestKey(r raydemand.Request) string {
	var key strings.Builder
	for _, name := range r.Bundle.Names() {
		fmt.Fprintf(&key, "%q %s,", name, r.Bundle[name])
	}
	for _, s := range r.Selectors {
		key.WriteByte('|')
		for _, c := range s {
			fmt.Fprintf(&key, "%q %d %q,", c.Key, c.Op, c.Values)
		}
	}
	return key.String()
}
