package report

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Explain plans the snapshot and answers one question about the plan. It returns ErrBrokenOff soon after stop is
// closed; a nil stop is never closed. It also returns ErrQuestion, and *UnknownError.
func Explain(
	stop <-chan struct{},
	s model.Snapshot,
	policy model.Policy,
	q model.Question,
) (e model.Explanation, err error) {
	if !placing.UnlessBrokenOff(func() { e, err = asker{policy, stop}.answer(s, q) }) {
		return model.Explanation{}, model.ErrBrokenOff
	}
	return e, err
}

func (a asker) answer(s model.Snapshot, q model.Question) (model.Explanation, error) {
	asked := 0
	for _, set := range []bool{
		q.Demand != nil, q.AskedGang != nil, q.Group != "", q.Pod != "", q.Gang != "", q.Request != "",
	} {
		if set {
			asked++
		}
	}
	if asked != 1 {
		return model.Explanation{}, model.ErrQuestion
	}
	if q.Demand != nil {
		return cutToMost(a.demand(s, *q.Demand)), nil
	}
	if q.AskedGang != nil {
		return cutToMost(a.gangLike(s, *q.AskedGang)), nil
	}
	about := q.About(&s)
	e, known := a.explain(s, about)
	if !known {
		about.Known = q.Known(&s)
		return model.Explanation{}, &about
	}
	return cutToMost(e), nil
}

// explain answers a question about a named object. It reports false if the snapshot has no such object.
func (a asker) explain(s model.Snapshot, about model.UnknownError) (model.Explanation, bool) {
	switch about.Kind {
	case "group":
		return a.group(s, about.Name)
	case "pod":
		return a.pod(s, about.Name)
	case "gang":
		return a.gang(s, about.Name)
	}
	return a.request(s, about.Name)
}

// mostDetails bounds the details of an answer. Nobody reads a detail for each of thousands of shapes and a hundred
// groups.
const mostDetails = 1000

func cutToMost(e model.Explanation) model.Explanation {
	if n := len(e.Details); n > mostDetails {
		e.Details = e.Details[:mostDetails]
		e.Message += fmt.Sprintf("; details cover the first %d of %d", mostDetails, n)
	}
	return e
}

// gang explains one placement group, and how each group relates to each of its bundles. It reports false if no gang
// with that ID is waiting in the snapshot.
func (a asker) gang(s model.Snapshot, id string) (model.Explanation, bool) {
	p, given, out := a.decide(&s)
	at := slices.IndexFunc(p.Gangs, func(g *fleet.Gang) bool { return g.ID == id })
	if at < 0 {
		return model.Explanation{}, false
	}
	return p.explainGang(p.Gangs[at], given, &out), true
}

func (r *Reporter) explainGang(g *fleet.Gang, given []int64, out *search.Outcome) model.Explanation {
	unmet := r.unmetReasons(given, out).gangs[g.Number]
	summary := gangSummary(g, dispositions(out), unmet)
	e := model.Explanation{
		About:   strings.TrimSpace("gang " + g.ID),
		Reason:  model.Reason{Code: summary.Worst(), Message: r.tally(&summary)},
		Details: []model.Detail{},
	}
	if unmet != nil {
		e.Message += ": " + unmet.Message
	}
	for k, o := range g.Options {
		e.Details = append(e.Details, r.itemDetails(phrase.Choice(k, len(g.Options)), o.Items, given, out)...)
	}
	return e
}

// request explains an owned request, or the request without an owner. It reports false if there is no such request.
func (a asker) request(s model.Snapshot, name string) (model.Explanation, bool) {
	p, given, out := a.decide(&s)
	if at := slices.IndexFunc(s.OwnedRequests, func(o raydemand.Owned) bool { return o.ID == name }); at >= 0 {
		return p.explainOwned(&s.OwnedRequests[at], given, &out), true
	}
	if name != model.PlainRequest || len(s.Constraint)+len(s.KeptResources) == 0 {
		return model.Explanation{}, false
	}
	return p.explainPlain(given, &out), true
}

// explainOwned explains a request as its status does, and why each group serves its bundles or does not.
func (r *Reporter) explainOwned(owned *raydemand.Owned, given []int64, out *search.Outcome) model.Explanation {
	e := model.Explanation{About: "request " + owned.ID, Details: []model.Detail{}}
	for _, row := range r.Report(given, *out).Requests {
		if row.ID == owned.ID && !row.Plain {
			e.Reason = model.Reason{
				Code: row.Reason.Code,
				Message: fmt.Sprintf(
					"%s: %d of %d bundles served, %d waiting: %s",
					row.State,
					row.Served,
					row.Asked,
					row.Waiting,
					row.Reason.Message,
				),
			}
			for _, g := range row.Groups {
				e.Details = append(
					e.Details,
					model.Detail{
						About: "pods of group " + g.Name,
						Reason: model.Reason{
							Code:    model.DispositionServed,
							Message: fmt.Sprintf("%d serve it, %d of them on their way", g.Pods, g.Waiting),
						},
					},
				)
			}
		}
	}
	items := r.Items(owned.Requests)
	for i, it := range items {
		for _, c := range r.Claims {
			if at := slices.IndexFunc(
				c.Items,
				func(planned *vector.Item) bool { return planned.Key == it.Key },
			); at >= 0 {
				items[i] = c.Items[at] // the plan serves it together with equal bundles of others
			}
		}
	}
	e.Details = append(e.Details, r.itemDetails("", items, given, out)...)
	return e
}

// explainPlain explains the request without an owner. Over REST, it is planned together with the requests of owners.
func (r *Reporter) explainPlain(given []int64, out *search.Outcome) model.Explanation {
	byItem, unmet := dispositions(out), r.unmetReasons(given, out)
	var all model.DemandSummary
	var why []string
	e := model.Explanation{About: "request " + model.PlainRequest, Details: []model.Detail{}}
	for i, c := range r.Claims {
		left := out.LeftOf(i, c)
		for k, it := range c.Items {
			reason := reasonAt(unmet.claims[i], k)
			all.Join(summaryOf(model.KindRequestResources, it, byItem[it], left[k], reason.Code))
			if reason.Message != "" {
				why = append(why, c.Purpose+": "+reason.Message)
			}
		}
		e.Details = append(e.Details, r.itemDetails(c.Purpose, c.Items, given, out)...)
	}
	e.Code, e.Message = all.Worst(), r.tally(&all)
	if text := phrase.List(why); text != "" {
		e.Message += ": " + text
	}
	return e
}

// itemDetails explains how each group relates to each item.
func (r *Reporter) itemDetails(prefix string, items []*vector.Item, given []int64, out *search.Outcome) []model.Detail {
	var details []model.Detail
	for _, it := range items {
		about := strings.TrimPrefix(prefix+", "+counted(it), ", ")
		for i := range r.Groups {
			details = append(
				details,
				model.Detail{About: about + ": group " + r.Groups[i].Name, Reason: r.groupVerdict(i, it, given, out)},
			)
		}
	}
	return details
}
