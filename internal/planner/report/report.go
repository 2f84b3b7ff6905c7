// Package report turns a decision into a Plan, with its summaries and request rows, and answers questions about it. It
// must not decide anything or invent sentences: they come from package reasons.
package report

import (
	"cmp"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/reasons"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Reporter reports one decision: as a plan, and as answers to questions.
type Reporter struct{ *reasons.Writer }

// New returns a reporter of a decision.
func New(p *search.Search) *Reporter { return &Reporter{reasons.New(p)} }

// Report returns the plan, sorted: groups by name, terminations by pod, unmet demand in the order of planning.
func (r *Reporter) Report(given []int64, out search.Outcome) model.Plan {
	plan := model.Plan{
		Launch:                     map[string]int{},
		Terminate:                  []model.Termination{},
		Groups:                     []model.GroupPlan{},
		InfeasibleRequests:         []model.UnmetRequest{},
		InfeasibleGangRequests:     []model.UnmetGang{},
		InfeasibleRequestResources: []model.UnmetRequest{},
		Findings: slices.Concat(
			r.Findings,
			r.UnpricedFindings(),
			r.LimitFindings(),
			r.SliceFindings(),
			r.WarmFindings(),
		),
	}
	for i := range r.Groups {
		if given[i] > 0 {
			plan.Launch[r.Groups[i].Name] = int(given[i])
		}
		plan.Groups = append(plan.Groups, r.row(i, given, &out))
	}
	plan.Terminate = r.terminations()
	unmet := r.unmetReasons(given, &out)
	r.reportUnmet(&plan, &out, &unmet)
	plan.Summary = r.summarize(&out, &unmet)
	plan.Requests = r.requestPlans(given, &out)
	plan.Warm = r.warmPlans(given, &out)
	plan.Price = r.price(given)
	plan.Deferred = r.Deferred()
	return plan
}

func (r *Reporter) row(i int, given []int64, out *search.Outcome) model.GroupPlan {
	g := &r.Groups[i]
	return model.GroupPlan{
		Name: g.Name, Current: int(g.Current), Desired: int(max(0, g.Current+given[i]-r.stoppedPods(i))),
		Min: int(g.MinPods), Max: int(g.MaxPods), Held: int(r.HeldOf(i)),
		Resources: g.Resources.Clone(), Reasons: r.Reasons(i, given, out),
		BelowMin: int(r.BelowMinimum(i, given)), Slice: g.Slice,
	}
}

// stoppedPods counts the pods that a group loses. Stopping one host stops its whole replica.
func (r *Reporter) stoppedPods(i int) int64 {
	hosts := r.Groups[i].Hosts
	if hosts == 1 {
		return r.Groups[i].Stopping
	}
	byReplica := map[string]int64{}
	for at := range r.Nodes {
		if n := &r.Nodes[at]; n.GroupIndex == i && n.Stop != "" {
			byReplica[n.Replica]++
		}
	}
	var stopped int64
	for _, n := range byReplica {
		stopped += vector.RoundUp(n, hosts)
	}
	return stopped
}

func (r *Reporter) terminations() []model.Termination {
	stops := []model.Termination{}
	for i := range r.Nodes {
		if n := &r.Nodes[i]; n.Stop != "" {
			stops = append(
				stops,
				model.Termination{
					Pod:     n.Pod,
					Group:   n.Group,
					Reason:  n.Stop,
					Busy:    n.State == model.Running,
					Message: n.StopMessage,
				},
			)
		}
	}
	slices.SortFunc(stops, func(a, b model.Termination) int { return cmp.Compare(a.Pod, b.Pod) })
	return stops
}

// unmetReasons explains unserved demand: requests and claims by index, gangs by number.
type unmetReasons struct {
	requests []model.Reason
	gangs    map[int]*model.Reason
	claims   map[int][]model.Reason
}

func (r *Reporter) unmetReasons(given []int64, out *search.Outcome) unmetReasons {
	unmet := unmetReasons{
		requests: make([]model.Reason, len(r.Requests)),
		gangs:    map[int]*model.Reason{},
		claims:   map[int][]model.Reason{},
	}
	for i, n := range out.Unserved {
		if n > 0 {
			unmet.requests[i] = r.UnmetReason([]*vector.Item{r.Requests[i]}, given, "")
			unmet.requests[i].Message = phrase.Join(unmet.requests[i].Message, r.Advice(r.Requests[i], given, n))
		}
	}
	alike := map[string]*model.Reason{} // gangs that hold no nodes yet
	for _, g := range out.Gangs {
		if known := alike[g.Key]; known != nil && !g.Held {
			unmet.gangs[g.Number] = known
			continue
		}
		reason := r.GangReason(g, given)
		unmet.gangs[g.Number] = &reason
		if !g.Held {
			alike[g.Key] = &reason
		}
	}
	for _, i := range out.Claims {
		unmet.claims[i] = r.claimReasons(r.Claims[i], given)
	}
	return unmet
}

// claimReasons explains, for each bundle of a call, why it is not served. Ray serves a call from within Ray as a whole
// or not at all, so a bundle that could be served alone names the other bundle that prevents it.
func (r *Reporter) claimReasons(c search.Claim, given []int64) []model.Reason {
	reasons := make([]model.Reason, len(c.Items))
	blocked := -1
	for k, it := range c.Items {
		reasons[k] = r.UnmetReason([]*vector.Item{it}, given, "")
		if blocked < 0 && reasons[k].Code == model.Impossible {
			blocked = k
		}
	}
	taken := slices.DeleteFunc(slices.Clone(c.Items), func(it *vector.Item) bool { return it.Deferred })
	whole := r.UnmetReason(taken, given, "")
	for k, it := range c.Items {
		switch {
		case c.Purpose == search.OverREST || !r.Possible(it) || it.Deferred:
		case blocked >= 0:
			reasons[k] = model.Reason{
				Code: model.Impossible,
				Message: fmt.Sprintf(
					"must be served together with %s of the same call: %s",
					phrase.Describe(c.Items[blocked].Request),
					reasons[blocked].Message,
				),
			}
		default:
			reasons[k] = whole
		}
	}
	for k, it := range c.Items {
		reasons[k].Message = phrase.Join(reasons[k].Message, r.Advice(it, given, it.Request.Count))
	}
	return reasons
}

func (r *Reporter) reportUnmet(plan *model.Plan, out *search.Outcome, unmet *unmetReasons) {
	for i, n := range out.Unserved {
		if n > 0 {
			rest := r.Requests[i].Asked()
			rest.Count = n
			plan.InfeasibleRequests = append(
				plan.InfeasibleRequests,
				model.UnmetRequest{Request: rest, Reason: unmet.requests[i]},
			)
		}
	}
	for _, g := range out.Gangs {
		plan.InfeasibleGangRequests = append(
			plan.InfeasibleGangRequests,
			model.UnmetGang{Gang: *g.Gang, Reason: *unmet.gangs[g.Number]},
		)
	}
	refused := r.RefusedClaimants()
	for i, c := range r.Claims {
		if reasons, failed := unmet.claims[i]; failed {
			left := out.LeftOf(i, c)
			for k, it := range c.Items {
				rest := it.Request
				if rest.Count = left[k]; rest.Count > 0 {
					unserved := model.UnmetRequest{Request: rest, Reason: reasons[k]}
					if c.Refused {
						unserved.AskedBy = refused.AskedBy(it)
					}
					plan.InfeasibleRequestResources = append(plan.InfeasibleRequestResources, unserved)
				}
			}
		}
	}
}

// price adds up the prices of launched pods. It is known only if every launched group has a price.
func (r *Reporter) price(given []int64) *float64 {
	var total float64
	priced := false
	for i, n := range given {
		if n == 0 {
			continue
		}
		if r.Groups[i].Price == nil {
			return nil
		}
		total += *r.Groups[i].Price * float64(n)
		priced = true
	}
	if !priced {
		return nil
	}
	return &total
}
