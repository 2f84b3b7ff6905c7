package report

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// disposition counts the bundles of one item that wait for pods requested earlier, and for pods that this plan
// launches.
type disposition struct {
	waiting, launching int64
	since              time.Time
}

func dispositions(o *search.Outcome) map[*vector.Item]*disposition {
	byItem := map[*vector.Item]*disposition{}
	of := func(it *vector.Item) *disposition {
		if byItem[it] == nil {
			byItem[it] = &disposition{}
		}
		return byItem[it]
	}
	for _, w := range o.Waits {
		f := of(w.Item)
		f.waiting += w.Count
		f.since = model.Earliest(f.since, w.Since)
	}
	for _, e := range o.Log {
		of(e.Item).launching += e.Count
	}
	return byItem
}

// summarize accounts for all demand. Call it after unmetReasons.
func (r *Reporter) summarize(out *search.Outcome, unmet *unmetReasons) []model.DemandSummary {
	byItem := dispositions(out)
	all := make([]model.DemandSummary, 0, len(r.Requests)+len(r.Gangs))
	for i, it := range r.Requests {
		all = append(all, summaryOf(model.KindRequest, it, byItem[it], out.Unserved[i], unmet.requests[i].Code))
	}
	for _, g := range r.Gangs {
		all = append(all, gangSummary(g, byItem, unmet.gangs[g.Number]))
	}
	known := map[string]int{} // index of the admitted REST requests, by kind
	for i, c := range r.Claims {
		reasons := unmet.claims[i]
		left := out.LeftOf(i, c)
		for k, it := range c.Items {
			code := reasonAt(reasons, k).Code
			d := summaryOf(model.KindRequestResources, it, byItem[it], left[k], code)
			d.OverREST = c.Purpose == search.OverREST
			if at, admitted := known[it.Key]; c.Refused && admitted {
				all[at].Asked += d.Asked
				all[at].AddUnmet(code, d.Asked)
				continue
			}
			if d.OverREST {
				known[it.Key] = len(all)
			}
			all = append(all, d)
		}
	}
	return all
}

// reasonAt returns the k-th reason of a claim. A claim that is served has none.
func reasonAt(reasons []model.Reason, k int) model.Reason {
	if reasons == nil {
		return model.Reason{}
	}
	return reasons[k]
}

func summaryOf(
	kind model.DemandKind,
	it *vector.Item,
	f *disposition,
	unserved int64,
	code string,
) model.DemandSummary {
	d := model.DemandSummary{
		Kind:      kind,
		Resources: it.Request.Bundle,
		Selectors: it.Asked().Selectors,
		Slice:     it.Request.Slice,
		Moving:    it.Request.Moving,
		Asked:     it.Request.Count,
	}
	d.Served = d.Asked - unserved
	if f != nil {
		d.Waiting, d.Launching, d.WaitingSince = f.waiting, f.launching, f.since
		d.Served -= d.Waiting + d.Launching
	}
	if unserved > 0 {
		d.AddUnmet(code, unserved)
	}
	return d
}

// gangSummary counts a gang with the last of its bundles, because it starts when all of them have a place.
func gangSummary(g *fleet.Gang, byItem map[*vector.Item]*disposition, unmet *model.Reason) model.DemandSummary {
	d := model.DemandSummary{Kind: model.KindGang, Gang: g.Gang, Asked: 1}
	if unmet != nil {
		d.AddUnmet(unmet.Code, 1)
		return d
	}
	var all disposition
	for _, o := range g.Options {
		for _, it := range o.Items {
			if f := byItem[it]; f != nil {
				all.waiting += f.waiting
				all.launching += f.launching
				all.since = model.Earliest(all.since, f.since)
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

func (r *Reporter) tally(d *model.DemandSummary) string {
	waitingFor := ""
	if !d.WaitingSince.IsZero() && d.WaitingSince.Before(r.TakenAt) {
		waitingFor = ", the oldest for " + phrase.Span(r.TakenAt.Sub(d.WaitingSince).Seconds())
	}
	return fmt.Sprintf("%d asked, %s", d.Asked, d.TallyWaiting(waitingFor))
}
