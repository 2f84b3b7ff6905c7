// Package why turns a decision into a Plan, and answers questions about it. It reads what package place recorded
// when it decided: codes, numbers and names. Each sentence for them is in one table (sentences.go). It must not decide
// anything or place demand, and package place must not import it.
package why

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// decision is one decision: the launches by group, and what they serve. What is found for several sentences is kept.
type decision struct {
	*place.Search
	given []int64
	out   *place.Outcome

	bounds     []*bound
	full       *landing.Taken
	resources  []string
	considered []candidate
	// refused and launchedFor are the requests that are not planned for, and those that pods are launched for.
	refused, launchedFor claimants
	requests             []model.RequestPlan
	unserved             *unmet
	byItem               map[*place.Item]model.DemandSummary
}

// Report returns the plan, sorted: groups by name, terminations by pod, unmet demand in the order of planning.
func Report(p *place.Search, given []int64, out place.Outcome) model.Plan {
	d := &decision{Search: p, given: given, out: &out}
	plan := model.Plan{
		Launch:                     map[string]int{},
		Groups:                     []model.GroupPlan{},
		InfeasibleRequests:         []model.UnmetRequest{},
		InfeasibleGangRequests:     []model.UnmetGang{},
		InfeasibleRequestResources: []model.UnmetRequest{},
		Findings: slices.Concat(d.Findings, d.unpricedFindings(), d.limitFindings(), d.sliceFindings(),
			d.warmFindings()),
	}
	for i := range d.Groups {
		if given[i] > 0 {
			plan.Launch[d.Groups[i].Name] = int(given[i])
		}
		plan.Groups = append(plan.Groups, d.row(i))
	}
	plan.Terminate = d.terminations()
	d.reportUnmet(&plan)
	plan.Summary = d.summarize()
	plan.Requests = d.requestPlans()
	plan.Warm = d.warmPlans()
	plan.Price = d.price()
	plan.Deferred = d.Deferred()
	plan.Stays = d.stays()
	return plan
}

func (d *decision) row(i int) model.GroupPlan {
	g := &d.Groups[i]
	return model.GroupPlan{
		Name: g.Name, Current: int(g.Current), Desired: int(max(0, g.Current+d.given[i]-d.stoppedPods(i))),
		Min: int(g.MinPods), Max: int(g.MaxPods), Held: int(d.HeldOf(i)), BelowMin: int(d.belowMinimum(i)),
		Resources: g.Resources.Clone(), Reasons: d.reasons(i), Slice: g.Slice,
	}
}

// stoppedPods counts the pods that a group loses. Stopping one host stops its whole replica.
func (d *decision) stoppedPods(i int) (stopped int64) {
	byReplica := map[string]int64{}
	for _, n := range d.stopping(i) {
		byReplica[n.Replica]++
	}
	for _, n := range byReplica {
		stopped += place.RoundUp(n, d.Groups[i].Hosts)
	}
	return stopped
}

// stopping yields the nodes of a group that the plan stops, by number, and staying those that it does not.
func (d *decision) stopping(group int) iter.Seq2[int, *place.Node] { return d.nodesOf(group, true) }
func (d *decision) staying(group int) iter.Seq2[int, *place.Node]  { return d.nodesOf(group, false) }

func (d *decision) nodesOf(group int, stop bool) iter.Seq2[int, *place.Node] {
	return func(yield func(int, *place.Node) bool) {
		for at := range d.Nodes {
			n := &d.Nodes[at]
			if n.GroupIndex == group && (n.Stop != "") == stop && !yield(at, n) {
				return
			}
		}
	}
}

func (d *decision) terminations() []model.Termination {
	stops := []model.Termination{}
	for i := range d.Nodes {
		if n := &d.Nodes[i]; n.Stop != "" {
			stops = append(stops, model.Termination{Pod: n.Pod, Group: n.Group, Reason: n.Stop,
				Busy: n.State == model.Running, Message: n.StopMessage})
		}
	}
	slices.SortFunc(stops, func(a, b model.Termination) int { return cmp.Compare(a.Pod, b.Pod) })
	return stops
}

// price adds up the prices of launched pods. It is known only if every launched group has a price.
func (d *decision) price() (sum *float64) {
	var total float64
	for i, n := range d.given {
		if n == 0 {
			continue
		}
		if d.Groups[i].Price == nil {
			return nil
		}
		total += *d.Groups[i].Price * float64(n)
		sum = &total
	}
	return sum
}

func (d *decision) reportUnmet(plan *model.Plan) {
	unmet := d.unmet()
	for i, n := range d.out.Unserved {
		if n > 0 {
			rest := d.Requests[i].Asked()
			rest.Count = n
			plan.InfeasibleRequests = append(plan.InfeasibleRequests,
				model.UnmetRequest{Request: rest, Reason: unmet.requests[i]})
		}
	}
	for _, g := range d.out.Gangs {
		plan.InfeasibleGangRequests = append(plan.InfeasibleGangRequests,
			model.UnmetGang{Gang: *g.Gang, Reason: *unmet.gangs[g.Number]})
	}
	d.requestPlans()
	d.eachClaimed(func(c *place.Claim, it *place.Item, left int64, reason model.Reason) {
		rest := it.Request
		if rest.Count = left; left > 0 {
			unserved := model.UnmetRequest{Request: rest, Reason: reason}
			if c.Refused {
				unserved.AskedBy = d.refused.names(it, "the plain request")
			}
			plan.InfeasibleRequestResources = append(plan.InfeasibleRequestResources, unserved)
		}
	})
}

// unmet explains unserved demand: requests and claims by index, gangs by number.
type unmet struct {
	requests []model.Reason
	gangs    map[int]*model.Reason
	claims   map[int][]model.Reason
}

func (d *decision) unmet() *unmet {
	if d.unserved != nil {
		return d.unserved
	}
	all := &unmet{make([]model.Reason, len(d.Requests)), map[int]*model.Reason{}, map[int][]model.Reason{}}
	for i, n := range d.out.Unserved {
		if n > 0 {
			all.requests[i] = d.advised(d.unmetReason([]*place.Item{d.Requests[i]}), d.Requests[i], n)
		}
	}
	alike := map[string]*model.Reason{} // gangs that hold no nodes yet
	for _, g := range d.out.Gangs {
		reason := alike[g.Key]
		if reason == nil || g.Held {
			found := d.gangReason(g)
			reason = &found
		}
		if all.gangs[g.Number] = reason; !g.Held {
			alike[g.Key] = reason
		}
	}
	for _, i := range d.out.Claims {
		all.claims[i] = d.claimReasons(d.Claims[i])
	}
	d.unserved = all
	return all
}

// claimReasons explains, for each bundle of a call, why it is not served. Ray serves a call from within Ray as a whole
// or not at all, so a bundle that could be served alone names the other bundle that prevents it.
func (d *decision) claimReasons(c place.Claim) []model.Reason {
	all, blocked := make([]model.Reason, len(c.Items)), -1
	for k, it := range c.Items {
		all[k] = d.unmetReason([]*place.Item{it})
		if blocked < 0 && all[k].Code == model.Impossible {
			blocked = k
		}
	}
	planned := slices.DeleteFunc(slices.Clone(c.Items), func(it *place.Item) bool { return it.Deferred })
	whole := d.unmetReason(planned)
	for k, it := range c.Items {
		switch {
		case c.Purpose == place.OverREST || !d.Possible(it) || it.Deferred:
		case blocked >= 0:
			all[k] = together.with(model.Describe(c.Items[blocked].Request), all[blocked].Message)
		default:
			all[k] = whole
		}
	}
	for k, it := range c.Items {
		all[k] = d.advised(all[k], it, it.Request.Count)
	}
	return all
}

// eachClaimed calls visit with each bundle of each call of request_resources, how many are not served, and why.
func (d *decision) eachClaimed(visit func(c *place.Claim, it *place.Item, left int64, reason model.Reason)) {
	for i := range d.Claims {
		c, why := &d.Claims[i], d.unmet().claims[i]
		left := d.out.LeftOf(i, *c)
		for k, it := range c.Items {
			var reason model.Reason // a claim that is served has none
			if why != nil {
				reason = why[k]
			}
			visit(c, it, left[k], reason)
		}
	}
}

// limitFindings reports groups whose limits contradict each other. The plan leaves them as they are.
func (d *decision) limitFindings() (all []raydemand.Finding) {
	for i := range d.Groups {
		if g := &d.Groups[i]; g.Blocked == model.CodeInvalidLimits {
			all = append(all, raydemand.Finding{
				Code: model.FindingMinAboveMax, Severity: raydemand.Error, Object: "group " + g.Name,
				Field: "minReplicas", Seen: fmt.Sprint(g.Min),
				Why: fmt.Sprintf("above maxReplicas %d; the operator stops reconciling the whole cluster, "+
					"so the plan leaves the group as it is", g.Max),
				Fix: "lower minReplicas or raise maxReplicas",
			})
		}
	}
	return all
}

// unpricedFindings reports groups without a price, which make the prices of their substitutes irrelevant.
func (d *decision) unpricedFindings() (all []raydemand.Finding) {
	of := d.Costs.Of
	for i := range d.Groups {
		if d.Groups[i].Price != nil {
			continue
		}
		var names []string
		for k := range d.Groups {
			if of[k] == of[i] && d.Groups[k].Price != nil {
				names = append(names, d.Groups[k].Name)
			}
		}
		if len(names) > 0 {
			all = append(all, raydemand.Finding{
				Code: model.FindingUnpriced, Severity: raydemand.Info, Object: "group " + d.Groups[i].Name,
				Field: "price",
				Why: fmt.Sprintf("%s could serve the same work and %s a price; because this group has none, "+
					"the plan compares all of them by accelerators, CPUs and memory",
					joined(names), model.OneOrMany(int64(len(names)), "has", "have")),
				Fix: "set the group's price",
			})
		}
	}
	return all
}
