// Package raydemand is the vocabulary of what Ray asks for and what Ray says about its nodes: Amount, Bundle,
// Selector, Request, Gang, Demand, Node. It is pure: it reads no clock, no network and no Kubernetes, so every
// decision made from it can be replayed. Package gcs below it reads these values from a live Ray head.
package raydemand

// Request is a number of equal bundles that wait: tasks, actor creations, or entries of request_resources.
type Request struct {
	Bundle Bundle `json:"resources"`
	// Count is how many wait, at least 1.
	Count int64 `json:"count"`
	// Selectors are alternatives in order of preference; the first that can be had counts. None, or an empty
	// one, means any node.
	Selectors []Selector `json:"labelSelectors,omitempty"`
	// Slice is what is asked of each GPU beyond its number; nil is nothing. The bundle then has GPUs: see Sliced.
	Slice *SliceRequirement `json:"slice,omitempty"`
}

// Strategy is a placement group's strategy as Ray names it.
type Strategy string

// Ray's four placement strategies. The GCS tells PACK from SPREAD only in a gang's details.
const (
	Pack         Strategy = "PACK"
	Spread       Strategy = "SPREAD"
	StrictPack   Strategy = "STRICT_PACK"
	StrictSpread Strategy = "STRICT_SPREAD"
)

// Valid reports whether s is one of Ray's four strategies.
func (s Strategy) Valid() bool {
	switch s {
	case Pack, Spread, StrictPack, StrictSpread:
		return true
	}
	return false
}

// Gang is a placement group, or the unplaced rest of one: all of Bundles or nothing.
type Gang struct {
	// ID is the placement group's id in hex, the gang's stable identity; empty in hand-written snapshots.
	ID       string   `json:"id,omitempty"`
	Strategy Strategy `json:"strategy"`
	Bundles  []Bundle `json:"bundles"`
	// BundleSelectors is empty or parallel to Bundles.
	BundleSelectors []Selector `json:"bundleLabelSelectors,omitempty"`
	// Fallbacks are whole alternatives, tried in order after Bundles. Ray sends them as further bundle_selectors, and its
	// own autoscaler of 2.60 uses only the first (docs/reference/facts.md#planning-order).
	Fallbacks [][]Bundle `json:"fallbackBundles,omitempty"`
	// FallbackSelectors is empty or parallel to Fallbacks; each entry is empty or parallel to that alternative's bundles.
	FallbackSelectors [][]Selector `json:"fallbackBundleLabelSelectors,omitempty"`
	// TopologyLabel, when set, wants all bundles on nodes that share one value of this label
	// (placement_group(topology_strategy={label: "STRICT_PACK"}), Ray 2.60).
	TopologyLabel string `json:"topologyLabel,omitempty"`
}

// PlacedLabel is the dynamic label that nodes already holding a bundle of this gang carry (ray: _PG_<hex>).
func (g Gang) PlacedLabel() string { return "_PG_" + g.ID }

// SelectorsOf returns the selectors of Fallbacks[i], nil where it has none.
func (g Gang) SelectorsOf(i int) []Selector {
	if i < len(g.FallbackSelectors) {
		return g.FallbackSelectors[i]
	}
	return nil
}

// Demand is everything one Ray cluster asks for at one moment.
type Demand struct {
	Requests []Request `json:"pendingRequests"`
	Gangs    []Gang    `json:"pendingGangRequests"`
	// Constraint is request_resources of Ray's own SDK: the cluster keeps at least this much in total,
	// whatever is in use. All or nothing.
	Constraint []Request `json:"requestResources"`
}
