package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// DemandKind tells the three kinds of demand apart; the words are those of the REST API.
type DemandKind string

// The kinds of demand: pending tasks and actors by shape, placement groups, and request_resources.
const (
	KindRequest          DemandKind = "request"
	KindGang             DemandKind = "gang"
	KindRequestResources DemandKind = "requestResources"
)

// DemandSummary tells what becomes of one demand: one entry for each shape of request and of request_resources, and one
// for each gang. Asked is the sum of all counts that follow it; a gang counts as one.
type DemandSummary struct {
	Kind DemandKind `json:"kind"`
	// Resources and Selectors are what one bundle asks for; both are absent for a gang.
	Resources raydemand.Bundle     `json:"resources,omitempty"`
	Selectors []raydemand.Selector `json:"labelSelectors,omitempty"`
	// Slice is what it asks of each GPU beyond their number; nil is nothing.
	Slice *raydemand.SliceWish `json:"slice,omitempty"`
	Gang  *raydemand.Gang      `json:"gang,omitempty"`

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

// add counts unserved demand under its reason.
func (d *DemandSummary) add(code string, n int64) {
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

// fate is what waits of one item, for pods asked for earlier and for pods that this plan launches.
type fate struct {
	waiting, launching int64
	since              time.Time
}

func fatesIn(o *outcome) map[*item]*fate {
	fates := map[*item]*fate{}
	of := func(it *item) *fate {
		if fates[it] == nil {
			fates[it] = &fate{}
		}
		return fates[it]
	}
	for _, w := range o.waits {
		f := of(w.item)
		f.waiting += w.count
		f.since = earliest(f.since, w.since)
	}
	for _, e := range o.log {
		of(e.item).launching += e.count
	}
	return fates
}

// summarize accounts for all demand. It is called when the reasons of what is not served are known.
func (r *reporter) summarize(out *outcome, unmet *unmetReasons) []DemandSummary {
	fates := fatesIn(out)
	all := make([]DemandSummary, 0, len(r.requests)+len(r.gangs))
	for i, it := range r.requests {
		all = append(all, summaryOf(KindRequest, it, fates[it], out.unserved[i], unmet.requests[i].Code))
	}
	for _, g := range r.gangs {
		all = append(all, gangSummary(g, fates, unmet.gangs[g.number]))
	}
	known := map[string]int{} // what is admitted of requests over REST, by kind
	for i, c := range r.claims {
		reasons := unmet.claims[i]
		left := out.leftOf(i, c)
		for k, it := range c.items {
			code := reasonAt(reasons, k).Code
			d := summaryOf(KindRequestResources, it, fates[it], left[k], code)
			d.OverREST = c.purpose == overREST
			if at, admitted := known[it.key]; c.refused && admitted {
				all[at].Asked += d.Asked
				all[at].add(code, d.Asked)
				continue
			}
			if d.OverREST {
				known[it.key] = len(all)
			}
			all = append(all, d)
		}
	}
	return all
}

// reasonAt is one of the reasons of a claim, which has none when it is served.
func reasonAt(reasons []Reason, k int) Reason {
	if reasons == nil {
		return Reason{}
	}
	return reasons[k]
}

func summaryOf(kind DemandKind, it *item, f *fate, unserved int64, code string) DemandSummary {
	d := DemandSummary{Kind: kind, Resources: it.request.Bundle, Selectors: it.request.Selectors, Slice: it.request.Slice, Asked: it.request.Count}
	d.Served = d.Asked - unserved
	if f != nil {
		d.Waiting, d.Launching, d.WaitingSince = f.waiting, f.launching, f.since
		d.Served -= d.Waiting + d.Launching
	}
	if unserved > 0 {
		d.add(code, unserved)
	}
	return d
}

// gangSummary counts a gang with the last of its bundles: it starts when all of them have a place.
func gangSummary(g *gang, fates map[*item]*fate, unmet *Reason) DemandSummary {
	d := DemandSummary{Kind: KindGang, Gang: g.Gang, Asked: 1}
	if unmet != nil {
		d.add(unmet.Code, 1)
		return d
	}
	var all fate
	for _, o := range g.options {
		for _, it := range o.items {
			if f := fates[it]; f != nil {
				all.waiting += f.waiting
				all.launching += f.launching
				all.since = earliest(all.since, f.since)
			}
		}
	}
	switch {
	case all.launching > 0:
		d.Launching = 1
	case all.waiting > 0:
		d.Waiting, d.WaitingSince = 1, all.since
	default:
		d.Served = 1
	}
	return d
}

// Join adds up the counts of entries; what they ask for is left as it is.
func (d *DemandSummary) Join(other DemandSummary) {
	d.Asked += other.Asked
	d.Served += other.Served
	d.Waiting += other.Waiting
	d.WaitingSince = earliest(d.WaitingSince, other.WaitingSince)
	d.Launching += other.Launching
	d.Impossible += other.Impossible
	d.Capped += other.Capped
	d.Closed += other.Closed
	d.CoolingDown += other.CoolingDown
}

// verdict is the worst that becomes of any of it.
func (d *DemandSummary) verdict() string {
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

// Tally writes the counts that are not zero as a person would: 1 is served by what runs now, 2 wait for pods on their way.
func (d *DemandSummary) Tally() string {
	since := ""
	if !d.WaitingSince.IsZero() {
		since = " since " + d.WaitingSince.UTC().Format(time.RFC3339)
	}
	return d.tally(since)
}

func (d *DemandSummary) tally(waitingFor string) string {
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
	return d.Kind != KindGang && d.Resources.IsZero() && !slices.ContainsFunc(d.Selectors, func(s raydemand.Selector) bool { return len(s) > 0 })
}

func (r *reporter) tally(d *DemandSummary) string {
	waitingFor := ""
	if !d.WaitingSince.IsZero() && d.WaitingSince.Before(r.takenAt) {
		waitingFor = ", the oldest for " + Span(r.takenAt.Sub(d.WaitingSince).Seconds())
	}
	return fmt.Sprintf("%d asked, %s", d.Asked, d.tally(waitingFor))
}
