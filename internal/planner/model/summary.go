package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// DemandKind distinguishes the three kinds of demand. The values are those of the REST API.
type DemandKind string

// The kinds of demand: pending tasks and actors by shape, placement groups, and request_resources.
const (
	KindRequest          DemandKind = "request"
	KindGang             DemandKind = "gang"
	KindRequestResources DemandKind = "requestResources"
)

// DemandSummary accounts for one demand: one entry for each shape of request and of request_resources, and one for each
// gang. Asked is the sum of all counts that follow it; a gang counts as one.
type DemandSummary struct {
	Kind DemandKind `json:"kind"`
	// Resources and Selectors describe one bundle; both are absent for a gang.
	Resources raydemand.Bundle     `json:"resources,omitempty"`
	Selectors []raydemand.Selector `json:"labelSelectors,omitempty"`
	// Slice is what it requires of each GPU; nil means nothing.
	Slice *raydemand.SliceRequirement `json:"slice,omitempty"`
	Gang  *raydemand.Gang             `json:"gang,omitempty"`

	// Moving: it is work on nodes whose machine goes, and waits for nothing yet.
	Moving bool `json:"moving,omitempty"`
	// OverREST: the call of request_resources was made over REST, not from within Ray.
	OverREST bool `json:"overREST,omitempty"`

	Asked int64 `json:"asked"`
	// Served demand fits on running nodes; Ray places it by itself.
	Served int64 `json:"served"`
	// Waiting demand counts on pods that were requested earlier, the oldest of them at WaitingSince (zero if unknown).
	// Launching demand counts on pods that this plan launches.
	Waiting      int64     `json:"waiting"`
	WaitingSince time.Time `json:"waitingSince,omitzero"`
	Launching    int64     `json:"launching"`
	// The demand that follows is not served, for the reason with that code.
	Impossible   int64 `json:"impossible"`
	Trying       int64 `json:"trying,omitempty"`
	PoolPromised int64 `json:"poolPromised,omitempty"`
	Capped       int64 `json:"capped"`
	Closed       int64 `json:"closed"`
	CoolingDown  int64 `json:"coolingDown"`
}

// AddUnmet counts unserved demand by its reason.
func (d *DemandSummary) AddUnmet(code string, n int64) {
	switch code {
	case Impossible:
		d.Impossible += n
	case Trying:
		d.Trying += n
	case PoolPromised:
		d.PoolPromised += n
	case Closed:
		d.Closed += n
	case CoolingDown:
		d.CoolingDown += n
	default:
		d.Capped += n
	}
}

// Join adds the counts of another entry and leaves the description unchanged.
func (d *DemandSummary) Join(other DemandSummary) {
	d.Asked += other.Asked
	d.Served += other.Served
	d.Waiting += other.Waiting
	d.WaitingSince = Earliest(d.WaitingSince, other.WaitingSince)
	d.Launching += other.Launching
	d.Impossible += other.Impossible
	d.Trying += other.Trying
	d.PoolPromised += other.PoolPromised
	d.Capped += other.Capped
	d.Closed += other.Closed
	d.CoolingDown += other.CoolingDown
}

// Worst returns the worst disposition of any part of the demand.
func (d *DemandSummary) Worst() string {
	switch {
	case d.Impossible > 0:
		return Impossible
	case d.Closed > 0:
		return Closed
	case d.CoolingDown > 0:
		return CoolingDown
	case d.Capped > 0:
		return Capped
	case d.PoolPromised > 0:
		return PoolPromised
	case d.Trying > 0:
		return Trying
	case d.Launching > 0:
		return DispositionLaunching
	case d.Waiting > 0:
		return DispositionWaiting
	}
	return DispositionServed
}

// Tally describes the counts that are not zero: 1 is served by running nodes, 2 wait for pods on their way.
func (d *DemandSummary) Tally() string {
	since := ""
	if !d.WaitingSince.IsZero() {
		since = " since " + d.WaitingSince.UTC().Format(time.RFC3339)
	}
	return d.TallyWaiting(since)
}

// TallyIfScaled is Tally for a RayCluster that Heliostat does not scale: the launches of the plan are not carried out.
func (d *DemandSummary) TallyIfScaled() string {
	return conditional.Replace(d.Tally())
}

func (d *DemandSummary) TallyWaiting(waitingFor string) string {
	var parts []string
	add := func(n int64, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	if d.asksForNothing() {
		add(d.Served, "requires no resources, so any node serves it", "require no resources, so any node serves them")
	} else {
		add(d.Served, "is served by running nodes", "are served by running nodes")
	}
	add(d.Waiting, "waits for pods on their way"+waitingFor, "wait for pods on their way"+waitingFor)
	add(d.Launching, "is placed on pods launched now", "are placed on pods launched now")
	add(d.Impossible, "is impossible", "are impossible")
	add(d.Trying, "follows if a pod that is tried serves it", "follow if a pod that is tried serves them")
	add(d.PoolPromised, "waits for nodes that are promised to RayClusters that come first",
		"wait for nodes that are promised to RayClusters that come first")
	add(d.Capped, "is capped", "are capped")
	add(d.Closed, "fits closed groups only", "fit closed groups only")
	add(d.CoolingDown, "waits until a group has cooled down", "wait until a group has cooled down")
	return strings.Join(parts, ", ")
}

// asksForNothing reports whether any node serves the request, so that it counts as served even before one runs.
func (d *DemandSummary) asksForNothing() bool {
	return d.Kind != KindGang && d.Resources.IsZero() &&
		!slices.ContainsFunc(d.Selectors, func(s raydemand.Selector) bool { return len(s) > 0 })
}

// About describes the demand: a bundle with its labels, or a gang by its ID.
func (d *DemandSummary) About() string {
	if d.Gang == nil {
		return Describe(raydemand.Request{Bundle: d.Resources, Selectors: d.Selectors, Slice: d.Slice})
	}
	return strings.TrimSpace(fmt.Sprintf("gang %s of %d bundles, %s", d.Gang.ID, len(d.Gang.Bundles), d.Gang.Strategy))
}

// Earliest returns the earlier of two times. A zero time is unknown.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
