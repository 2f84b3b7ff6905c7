package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// DemandKind distinguishes the three kinds of demand; the words are those of the REST API.
type DemandKind string

// The kinds of demand: pending tasks and actors by shape, placement groups, and request_resources.
const (
	KindRequest          DemandKind = "request"
	KindGang             DemandKind = "gang"
	KindRequestResources DemandKind = "requestResources"
)

// DemandSummary says what becomes of one demand: one entry for each shape of request and of request_resources, and one
// for each gang. Asked is the sum of all counts that follow it; a gang counts as one.
type DemandSummary struct {
	Kind DemandKind `json:"kind"`
	// Resources and Selectors are what one bundle asks for; both are absent for a gang.
	Resources raydemand.Bundle     `json:"resources,omitempty"`
	Selectors []raydemand.Selector `json:"labelSelectors,omitempty"`
	// Slice is what it asks of each GPU beyond their number; nil is nothing.
	Slice *raydemand.SliceRequirement `json:"slice,omitempty"`
	Gang  *raydemand.Gang             `json:"gang,omitempty"`

	// OverREST: the call of request_resources was made over REST, and not from within Ray.
	OverREST bool `json:"overREST,omitempty"`

	Asked int64 `json:"asked"`
	// Served fits on what runs now; Ray places it by itself.
	Served int64 `json:"served"`
	// Waiting counts on pods that were asked for earlier, the oldest of them at WaitingSince (zero where not known), and
	// Launching on pods that this plan launches.
	Waiting      int64     `json:"waiting"`
	WaitingSince time.Time `json:"waitingSince,omitzero"`
	Launching    int64     `json:"launching"`
	// Impossible, Capped, Closed and CoolingDown are not served, for the reason of that code.
	Impossible  int64 `json:"impossible"`
	Capped      int64 `json:"capped"`
	Closed      int64 `json:"closed"`
	CoolingDown int64 `json:"coolingDown"`
}

// AddUnmet counts unserved demand under its reason.
func (d *DemandSummary) AddUnmet(code string, n int64) {
	switch code {
	case Impossible:
		d.Impossible += n
	case Closed:
		d.Closed += n
	case CoolingDown:
		d.CoolingDown += n
	default:
		d.Capped += n
	}
}

// Join adds up the counts of entries; what they ask for is left as it is.
func (d *DemandSummary) Join(other DemandSummary) {
	d.Asked += other.Asked
	d.Served += other.Served
	d.Waiting += other.Waiting
	d.WaitingSince = Earliest(d.WaitingSince, other.WaitingSince)
	d.Launching += other.Launching
	d.Impossible += other.Impossible
	d.Capped += other.Capped
	d.Closed += other.Closed
	d.CoolingDown += other.CoolingDown
}

// Worst is the worst that becomes of any of it.
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
	case d.Launching > 0:
		return FateLaunching
	case d.Waiting > 0:
		return FateWaiting
	}
	return FateServed
}

// Tally writes the counts that are not zero as a person would: 1 is served by what runs now, 2 wait for pods on their
// way.
func (d *DemandSummary) Tally() string {
	since := ""
	if !d.WaitingSince.IsZero() {
		since = " since " + d.WaitingSince.UTC().Format(time.RFC3339)
	}
	return d.TallyWaiting(since)
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
		add(d.Served, "asks for nothing, so any node will do", "ask for nothing, so any node will do")
	} else {
		add(d.Served, "is served by what runs now", "are served by what runs now")
	}
	add(d.Waiting, "waits for pods on their way"+waitingFor, "wait for pods on their way"+waitingFor)
	add(d.Launching, "gets a place on pods launched now", "get places on pods launched now")
	add(d.Impossible, "is impossible", "are impossible")
	add(d.Capped, "is capped", "are capped")
	add(d.Closed, "has only closed groups", "have only closed groups")
	add(d.CoolingDown, "has to wait until a group has cooled down", "have to wait until a group has cooled down")
	return strings.Join(parts, ", ")
}

// asksForNothing reports whether a request has its place on any node, and is served therefore even where none runs yet.
func (d *DemandSummary) asksForNothing() bool {
	return d.Kind != KindGang && d.Resources.IsZero() &&
		!slices.ContainsFunc(d.Selectors, func(s raydemand.Selector) bool { return len(s) > 0 })
}

// About says what is asked for: a bundle with its labels, or a gang by its id.
func (d *DemandSummary) About() string {
	if d.Gang == nil {
		return phrase.Describe(raydemand.Request{Bundle: d.Resources, Selectors: d.Selectors, Slice: d.Slice})
	}
	return strings.TrimSpace(fmt.Sprintf("gang %s of %d bundles, %s", d.Gang.ID, len(d.Gang.Bundles), d.Gang.Strategy))
}

// Earliest is the earlier of two moments; a zero one is not known.
func Earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
