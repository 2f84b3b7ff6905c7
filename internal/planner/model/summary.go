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

// part is one thing that becomes of demand: its code, how much of the demand it is, and the words for one and for many.
type part struct {
	code      string
	count     *int64
	one, many string
}

// parts lists all that becomes of demand, in the order of sentences.
func (d *DemandSummary) parts() []part {
	return []part{
		{DispositionServed, &d.Served, "is served by running nodes", "are served by running nodes"},
		{DispositionWaiting, &d.Waiting, "waits for pods on their way", "wait for pods on their way"},
		{DispositionLaunching, &d.Launching, "is placed on pods launched now", "are placed on pods launched now"},
		{Impossible, &d.Impossible, "is impossible", "are impossible"},
		{Trying, &d.Trying, "follows if a pod that is tried serves it", "follow if a pod that is tried serves them"},
		{PoolPromised, &d.PoolPromised, "waits for nodes that are promised to RayClusters that come first",
			"wait for nodes that are promised to RayClusters that come first"},
		{Capped, &d.Capped, "is capped", "are capped"},
		{Closed, &d.Closed, "fits closed groups only", "fit closed groups only"},
		{CoolingDown, &d.CoolingDown, "waits until a group has cooled down", "wait until a group has cooled down"},
	}
}

// worstFirst are the dispositions but the best, which is to be served.
var worstFirst = []string{Impossible, Closed, CoolingDown, Capped, PoolPromised, Trying, DispositionLaunching,
	DispositionWaiting}

// AddUnmet counts unserved demand by its reason. Other reasons than those of a part are caps.
func (d *DemandSummary) AddUnmet(code string, n int64) {
	count := &d.Capped
	for _, p := range d.parts() {
		if p.code == code {
			count = p.count
		}
	}
	*count += n
}

// Join adds the counts of another entry and leaves the description unchanged.
func (d *DemandSummary) Join(other DemandSummary) {
	d.Asked += other.Asked
	d.WaitingSince = Earliest(d.WaitingSince, other.WaitingSince)
	more := other.parts()
	for i, p := range d.parts() {
		*p.count += *more[i].count
	}
}

// Worst returns the worst disposition of any part of the demand.
func (d *DemandSummary) Worst() string {
	parts := d.parts()
	for _, code := range worstFirst {
		if slices.ContainsFunc(parts, func(p part) bool { return p.code == code && *p.count > 0 }) {
			return code
		}
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
	var texts []string
	for _, p := range d.parts() {
		switch {
		case *p.count == 0:
			continue
		case p.code == DispositionServed && d.asksForNothing():
			p.one, p.many = "requires no resources, so nothing is launched for it",
				"require no resources, so nothing is launched for them"
		case p.code == DispositionWaiting:
			p.one, p.many = p.one+waitingFor, p.many+waitingFor
		}
		texts = append(texts, fmt.Sprintf("%d %s", *p.count, OneOrMany(*p.count, p.one, p.many)))
	}
	return strings.Join(texts, ", ")
}

// asksForNothing reports whether the demand has only empty bundles, so that it counts as served even before a node
// runs. A sum over several demands has no kind and no bundles, and asks for something.
func (d *DemandSummary) asksForNothing() bool {
	if d.Kind == "" {
		return false
	}
	bundles, selectors := []raydemand.Bundle{d.Resources}, d.Selectors
	if d.Gang != nil {
		bundles, selectors = d.Gang.Bundles, d.Gang.BundleSelectors
	}
	return !slices.ContainsFunc(bundles, func(b raydemand.Bundle) bool { return !b.IsZero() }) &&
		!slices.ContainsFunc(selectors, func(s raydemand.Selector) bool { return len(s) > 0 })
}

// Earliest returns the earlier of two times. A zero time is unknown.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
