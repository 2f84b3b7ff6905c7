package report

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/reasons"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// asker answers questions by a policy. It gives up soon after stop is closed; a nil stop is never closed.
type asker struct {
	policy model.Policy
	stop   <-chan struct{}
}

func (a asker) decide(s *model.Snapshot) (r *Reporter, given []int64, out search.Outcome) {
	p, given, out := search.Decide(a.stop, s, a.policy)
	return New(p), given, out
}

// demand explains a request: all pending ones with these resources, and with these selectors if it has any. If fewer
// wait in the snapshot than the request counts, the plan is made as if that many did.
func (a asker) demand(s model.Snapshot, r raydemand.Request) model.Explanation {
	r.Count = max(r.Count, 1)
	same := func(other raydemand.Request) bool {
		return other.Bundle.Equal(r.Bundle) && other.Slice.Equal(r.Slice) &&
			(len(r.Selectors) == 0 || slices.EqualFunc(other.Selectors, r.Selectors,
				func(a, b raydemand.Selector) bool { return a.String() == b.String() }))
	}
	var waiting int64
	for _, other := range s.Requests {
		if same(other) {
			waiting = min(waiting+max(other.Count, 0), vector.MaxCount)
		}
	}
	if more := r.Count - waiting; more > 0 {
		added := r
		added.Count = more
		s.Requests = append(slices.Clone(s.Requests), added)
	}
	p, given, out := a.decide(&s)
	e := p.explainRequests(same, given, &out)
	e.About = "demand " + phrase.Describe(r)
	switch {
	case waiting == 0 && r.Count == 1:
		e.Message = "no task in the snapshot is waiting for it; if one were: " + e.Message
	case waiting == 0:
		e.Message = fmt.Sprintf("no task in the snapshot is waiting for it; if %d were: %s", r.Count, e.Message)
	case waiting < r.Count:
		e.Message = fmt.Sprintf("%d in the snapshot; with %d: %s", waiting, r.Count, e.Message)
	}
	e.Details = append(e.Details, p.elsewhere(r.Bundle, given, &out)...)
	return e
}

// explainRequests explains the pending requests that are the same as one, each of its choices of labels, and each
// group.
func (r *Reporter) explainRequests(
	same func(raydemand.Request) bool,
	given []int64,
	out *search.Outcome,
) model.Explanation {
	unmet := r.unmetReasons(given, out)
	byItem := dispositions(out)
	e := model.Explanation{Details: []model.Detail{}}
	var all model.DemandSummary
	var first *vector.Item
	for i, it := range r.Requests {
		if !same(it.Asked()) {
			continue
		}
		if first == nil {
			first = it
		}
		all.Kind, all.Resources, all.Selectors = model.KindRequest, it.Request.Bundle, slices.Concat(
			all.Selectors,
			it.Asked().Selectors,
		)
		all.Join(summaryOf(model.KindRequest, it, byItem[it], out.Unserved[i], unmet.requests[i].Code))
		if e.Message == "" {
			e.Message = unmet.requests[i].Message
		}
	}
	e.Code = all.Worst()
	e.Message = strings.TrimSuffix(r.tally(&all)+": "+e.Message, ": ")
	e.Details = append(e.Details, r.choices(first, given, out)...)
	for i := range r.Groups {
		e.Details = append(e.Details, r.groupDetails(i, first, given, out)...)
	}
	return e
}

// groupDetails reports whether new pods and present pods of one group could serve an item.
func (r *Reporter) groupDetails(i int, it *vector.Item, given []int64, out *search.Outcome) []model.Detail {
	g := &r.Groups[i]
	details := []model.Detail{{About: "group " + g.Name, Reason: r.groupVerdict(i, it, given, out)}}
	var room, there int
	for at := range r.Nodes {
		if n := &r.Nodes[at]; n.GroupIndex == i && n.Stop == "" && n.State != model.Pending {
			there++
			if it.Rank[n.Shape.Labels] != vector.NoMatch && n.Free.Times(it.Need, 1) == 1 {
				room++
			}
		}
	}
	if there > 0 {
		details = append(
			details,
			model.Detail{About: "pods of group " + g.Name, Reason: model.Reason{Code: model.PodRoom,
				Message: fmt.Sprintf("%d of %d joined pods have room for one now", room, there)}},
		)
	}
	return details
}

func (r *Reporter) groupVerdict(i int, it *vector.Item, given []int64, out *search.Outcome) model.Reason {
	r.BreakOff()
	var own, others int64
	by := -1
	for _, e := range out.Log {
		switch {
		case e.Item != it:
		case e.Group == i:
			own += e.Count
		default:
			others, by = others+e.Count, e.Group
		}
	}
	if own > 0 {
		return model.Reason{
			Code: model.CodeLaunch,
			Message: fmt.Sprintf(
				"launching %s, which %s %d%s",
				phrase.Pods(given[i]),
				phrase.OneOrMany(given[i], "serves", "serve"),
				own,
				r.ByChoice(it, i),
			),
		}
	}
	if reason, ok := r.Obstacle(i, it, given); ok {
		return reason
	}
	if others > 0 {
		return r.Preferred(reasons.Candidate{Item: it, Taken: by}, i, given, out)
	}
	if r.waitsStill(it, out) {
		return model.Reason{Code: model.CodeNotInFull, Message: "it " + reasons.NotInFull}
	}
	if reason, short := r.Tightest(i, given); r.fellBack(it, out) && short < vector.BundlesOf([]*vector.Item{it}) {
		reason.Message = "the gang uses a later choice: " + reason.Message
		return reason
	}
	return model.Reason{Code: model.CodeNotNeeded, Message: "its pods could serve it, but none is needed"}
}

// fellBack reports whether the gang of an item is served by a later choice.
func (r *Reporter) fellBack(it *vector.Item, out *search.Outcome) bool {
	owner, ok := r.Owner(it)
	return ok &&
		slices.ContainsFunc(
			out.Runs,
			func(run placing.Run) bool { return run.Option > owner.Option && slices.Contains(run.Gangs, owner.Gang) },
		)
}

// waitsStill reports whether some of an item, or of its gang or call, is not served.
func (r *Reporter) waitsStill(it *vector.Item, out *search.Outcome) bool {
	if at := slices.Index(r.Requests, it); at >= 0 {
		return out.Unserved[at] > 0
	}
	return slices.ContainsFunc(out.Gangs, func(g *fleet.Gang) bool { return slices.Contains(g.Items(), it) }) ||
		slices.ContainsFunc(out.Claims, func(i int) bool { return slices.Contains(r.Claims[i].Items, it) })
}
