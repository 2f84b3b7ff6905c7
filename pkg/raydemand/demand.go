// Package raydemand is the vocabulary of what Ray requests and of what Ray reports about its nodes: Amount, Bundle,
// Selector, Request, Gang, Demand, Node. It must not read the clock, the network or Kubernetes, so that every decision
// that depends on it can be replayed. The package gcs below it reads these values from a live Ray head.
package raydemand

import "slices"

// Request is a number of equal bundles that are pending: tasks, actor creations, or entries of request_resources.
type Request struct {
	Bundle Bundle `json:"resources"`
	// Count is the number of pending bundles, at least 1.
	Count int64 `json:"count"`
	// Selectors are alternatives in order of preference; the first one that can be satisfied counts. An empty list or
	// an empty selector means any node.
	Selectors []Selector `json:"labelSelectors,omitempty"`
	// Slice is what the request requires of each GPU beyond their number; nil requires nothing. If it is set, the
	// bundle has GPUs: see Sliced.
	Slice *SliceRequirement `json:"slice,omitempty"`
	// Moving: the resources are in use on a worker whose machine is about to go. Nothing waits for them yet.
	Moving bool `json:"moving,omitempty"`
}

// Strategy is a placement group's strategy as Ray names it.
type Strategy string

// Ray's four placement strategies. The GCS distinguishes PACK from SPREAD only in a gang's details.
const (
	Pack         Strategy = "PACK"
	Spread       Strategy = "SPREAD"
	StrictPack   Strategy = "STRICT_PACK"
	StrictSpread Strategy = "STRICT_SPREAD"
)

// Valid reports whether s is one of Ray's four strategies.
func (s Strategy) Valid() bool {
	return slices.Contains([]Strategy{Pack, Spread, StrictPack, StrictSpread}, s)
}

// Gang is a placement group, or the part of one that is not placed yet. Its bundles are placed all or none.
type Gang struct {
	// ID is the placement group's id in hex, which is the gang's stable identity. It is empty in hand-written
	// snapshots.
	ID       string   `json:"id,omitempty"`
	Strategy Strategy `json:"strategy"`
	Bundles  []Bundle `json:"bundles"`
	// BundleSelectors is empty or parallel to Bundles.
	BundleSelectors []Selector `json:"bundleLabelSelectors,omitempty"`
	// Fallbacks are complete alternatives, tried in order after Bundles. Ray sends them as further bundle_selectors,
	// and its own autoscaler of 2.60 uses only the first (docs/reference/facts.md#planning-order).
	Fallbacks [][]Bundle `json:"fallbackBundles,omitempty"`
	// FallbackSelectors is empty or parallel to Fallbacks; each entry is empty or parallel to that alternative's
	// bundles.
	FallbackSelectors [][]Selector `json:"fallbackBundleLabelSelectors,omitempty"`
	// TopologyLabel, if set, requires that all bundles are on nodes with the same value of this label
	// (placement_group(topology_strategy={label: "STRICT_PACK"}), Ray 2.60).
	TopologyLabel string `json:"topologyLabel,omitempty"`
}

// PlacedLabel returns the dynamic label of nodes that already hold a bundle of this gang (ray: _PG_<hex>).
func (g Gang) PlacedLabel() string { return "_PG_" + g.ID }

// SelectorsOf returns the selectors of Fallbacks[i], or nil if it has none.
func (g Gang) SelectorsOf(i int) []Selector {
	if i < len(g.FallbackSelectors) {
		return g.FallbackSelectors[i]
	}
	return nil
}

// Alternatives returns the bundles of each choice: the preferred one, then the fallbacks that have bundles.
func (g *Gang) Alternatives() [][]Bundle {
	all := [][]Bundle{g.Bundles}
	for _, bundles := range g.Fallbacks {
		if len(bundles) > 0 {
			all = append(all, bundles)
		}
	}
	return all
}

// Together returns the bundles of one choice as requests. A strictly packed gang is one bundle as large as all of them,
// wherever all selectors match. Ray splits it over nodes if the selectors differ.
func (g *Gang) Together(bundles []Bundle, selectors []Selector) []Request {
	requests := make([]Request, len(bundles))
	for i, b := range bundles {
		requests[i] = Request{Bundle: b, Count: 1}
		if i < len(selectors) && len(selectors[i]) > 0 {
			requests[i].Selectors = selectors[i : i+1]
		}
	}
	if g.Strategy != StrictPack {
		return requests
	}
	whole := Request{Bundle: Bundle{}, Count: 1}
	var all Selector
	for i := range requests {
		whole.Bundle.Add(requests[i].Bundle)
		for _, s := range requests[i].Selectors {
			all = append(all, s...)
		}
	}
	if len(all) > 0 {
		whole.Selectors = []Selector{NewSelector(all...)}
	}
	return []Request{whole}
}

// AsksAs reports whether two gangs ask for the same in the same order; their IDs do not matter.
func (g *Gang) AsksAs(other *Gang) bool {
	sameBundles := func(a, b []Bundle) bool { return slices.EqualFunc(a, b, Bundle.Equal) }
	sameConstraint := func(a, b Constraint) bool {
		return a.Key == b.Key && a.Op == b.Op && slices.Equal(a.Values, b.Values)
	}
	sameSelectors := func(a, b []Selector) bool {
		return slices.EqualFunc(a, b, func(a, b Selector) bool { return slices.EqualFunc(a, b, sameConstraint) })
	}
	return g.Strategy == other.Strategy && g.TopologyLabel == other.TopologyLabel &&
		sameBundles(g.Bundles, other.Bundles) && sameSelectors(g.BundleSelectors, other.BundleSelectors) &&
		slices.EqualFunc(g.Fallbacks, other.Fallbacks, sameBundles) &&
		slices.EqualFunc(g.FallbackSelectors, other.FallbackSelectors, sameSelectors)
}

// Demand is everything that one Ray cluster requests at one moment.
type Demand struct {
	Requests []Request `json:"pendingRequests"`
	Gangs    []Gang    `json:"pendingGangRequests"`
	// Constraint is request_resources of Ray's own SDK: the cluster keeps at least this much in total, used or not. It
	// is satisfied as a whole or not at all.
	Constraint []Request `json:"requestResources"`
}
