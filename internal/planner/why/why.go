// Package why turns a decision into a Plan, and answers questions about it. It reads what package place recorded
// when it decided: codes, numbers and names. Each sentence for them is in one table (sentences.go). It must not decide
// anything or place demand, and package place must not import it.
//
// A reason is a code and a sentence. A verdict is the reason why one group does not serve some demand, and by how many
// of its properties it misses. A bound is how many more pods a group may have, with the limit that says so. A purpose
// is what pods are launched for, a candidate demand that a group without launches could have served. Claimants are the
// requests over REST that ask for a kind of bundle.
//
//	why.go         the rows of the plan, and why demand is not served
//	unserved.go    why no group serves demand: what each lacks, or its limit
//	limits.go      the limits of groups
//	slice.go       what GPUs lack, and how to cut cards differently
//	group.go       why a group has its size: what it launches, or what was preferred
//	demand.go      what becomes of demand, requests over REST and warm capacity
//	idle.go        why a worker is idle, or not
//	explain.go     answers to questions
package why

import (
	"cmp"
	"fmt"
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// decision is one decision: the launches by group, what they serve, and what several sentences say about it.
type decision struct {
	*place.Search
	given  []int64
	out    *place.Outcome
	bounds map[int]bound  // those that were asked for, by group
	full   *landing.Taken // the nodes with all pods
	// placed counts the bundles of each item that wait for pods requested earlier, and for pods that are launched now.
	placed map[*place.Item]model.DemandSummary
	// why is why an item or a gang is not served.
	why     map[any]model.Reason
	claimed []claimed
	// refused and launchedFor are the requests that are not planned for, and those that pods are launched for.
	refused, launchedFor claimants
	requests             []model.RequestPlan
	candidates           []*place.Item
}

// claimed is a bundle of a call of request_resources, and how many of it are not served.
type claimed struct {
	of   *place.Claim
	item *place.Item
	left int64
}

// newDecision finds why demand is not served, and what serves each request over REST.
func newDecision(p *place.Search, given []int64, out place.Outcome) *decision {
	d := &decision{Search: p, given: given, out: &out, bounds: map[int]bound{}, refused: claimants{},
		placed: map[*place.Item]model.DemandSummary{}, why: map[any]model.Reason{}, launchedFor: claimants{}}
	for _, w := range out.Waits {
		s := d.placed[w.Item]
		s.Waiting, s.WaitingSince = s.Waiting+w.Count, model.Earliest(s.WaitingSince, w.Since)
		d.placed[w.Item] = s
	}
	for _, e := range out.Log {
		s := d.placed[e.Item]
		s.Launching += e.Count
		d.placed[e.Item] = s
	}
	for i, n := range out.Unserved {
		if it := p.Requests[i]; n > 0 {
			d.why[it] = d.advised(d.unmetReason(it), it, n)
		}
	}
	alike := map[string]model.Reason{} // gangs that hold no nodes yet
	for _, g := range out.Gangs {
		reason, known := alike[g.Key]
		if !known || g.Held {
			reason = d.gangReason(g)
		}
		if d.why[g] = reason; !g.Held {
			alike[g.Key] = reason
		}
	}
	for i := range p.Claims {
		c := &p.Claims[i]
		for k, left := range out.LeftOf(i, *c) {
			d.claimed = append(d.claimed, claimed{c, c.Items[k], left})
		}
		if slices.Contains(out.Claims, i) {
			d.explainClaim(c)
		}
	}
	d.candidates = d.considered()
	d.planRequests()
	return d
}

// explainClaim explains, for each bundle of a call, why it is not served. Ray serves a call from within Ray as a whole
// or not at all, so a bundle that could be served alone names the other bundle that prevents it.
func (d *decision) explainClaim(c *place.Claim) {
	var whole model.Reason
	for _, it := range c.Items {
		d.why[it] = d.unmetReason(it)
		if !said(whole) && d.why[it].Code == model.Impossible {
			whole = together.with(model.Describe(it.Request), d.why[it].Message)
		}
	}
	planned := slices.DeleteFunc(slices.Clone(c.Items), func(it *place.Item) bool { return it.Deferred })
	if !said(whole) && len(planned) > 0 {
		whole = d.unmetReason(planned...)
	}
	for _, it := range c.Items {
		if c.Purpose != place.OverREST && d.Possible(it) && !it.Deferred {
			d.why[it] = whole
		}
		d.why[it] = d.advised(d.why[it], it, it.Request.Count)
	}
}

// Report returns the plan, sorted: groups by name, terminations by pod, unmet demand in the order of planning.
func Report(p *place.Search, given []int64, out place.Outcome) model.Plan {
	d := newDecision(p, given, out)
	plan := model.Plan{
		Launch:                     map[string]int{},
		Terminate:                  []model.Termination{},
		Groups:                     []model.GroupPlan{},
		InfeasibleRequests:         []model.UnmetRequest{},
		InfeasibleGangRequests:     []model.UnmetGang{},
		InfeasibleRequestResources: []model.UnmetRequest{},
		Summary:                    d.summarize(),
		Requests:                   d.requests,
		Warm:                       d.warmPlans(),
		Price:                      new(float64),
		Deferred:                   d.Deferred(),
		Stays:                      d.stays(),
		Findings:                   d.findings(),
	}
	for i, n := range given {
		plan.Groups = append(plan.Groups, d.row(i))
		if n == 0 {
			continue
		}
		plan.Launch[d.Groups[i].Name] = int(n)
		if price := d.Groups[i].Price; price == nil || plan.Price == nil {
			plan.Price = nil // it is known only if every launched group has a price
		} else {
			*plan.Price += *price * float64(n)
		}
	}
	if len(plan.Launch) == 0 {
		plan.Price = nil
	}
	for i := range d.Nodes {
		if n := &d.Nodes[i]; n.Stop != "" {
			plan.Terminate = append(plan.Terminate, model.Termination{Pod: n.Pod, Group: n.Group, Reason: n.Stop,
				Busy: n.State == model.Running, Message: n.StopMessage})
		}
	}
	slices.SortFunc(plan.Terminate, func(a, b model.Termination) int { return cmp.Compare(a.Pod, b.Pod) })
	d.reportUnmet(&plan)
	return plan
}

func (d *decision) reportUnmet(plan *model.Plan) {
	for i, n := range d.out.Unserved {
		if rest := d.Requests[i].Asked(); n > 0 {
			rest.Count = n
			plan.InfeasibleRequests = append(plan.InfeasibleRequests,
				model.UnmetRequest{Request: rest, Reason: d.why[d.Requests[i]]})
		}
	}
	for _, g := range d.out.Gangs {
		plan.InfeasibleGangRequests = append(plan.InfeasibleGangRequests,
			model.UnmetGang{Gang: *g.Gang, Reason: d.why[g]})
	}
	for _, c := range d.claimed {
		unserved := model.UnmetRequest{Request: c.item.Request, Reason: d.why[c.item]}
		if unserved.Count = c.left; c.left == 0 {
			continue
		}
		if c.of.Refused {
			unserved.AskedBy = d.refused.names(c.item, "the plain request")
		}
		plan.InfeasibleRequestResources = append(plan.InfeasibleRequestResources, unserved)
	}
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
	for at := range d.Nodes {
		if n := &d.Nodes[at]; n.GroupIndex == i && n.Stop != "" {
			byReplica[n.Replica]++
		}
	}
	for _, n := range byReplica {
		stopped += place.RoundUp(n, d.Groups[i].Hosts)
	}
	return stopped
}

// findings are those of the placer, then groups without a price, which make the prices of their substitutes irrelevant,
// groups whose limits contradict each other, slice requirements that cannot be evaluated, and warm capacity without
// effect.
func (d *decision) findings() []raydemand.Finding {
	all := slices.Clip(d.Findings)
	add := func(code string, severity raydemand.Severity, object, field, seen, why, fix string) {
		all = append(all, raydemand.Finding{Code: code, Severity: severity, Object: object, Field: field, Seen: seen,
			Why: why, Fix: fix})
	}
	of, withGPUs, proven := d.Costs.Of, 0, false
	for i := range d.Groups {
		g := &d.Groups[i]
		if s := g.Slice; s != nil && s.Kind != gpuinfo.WholeUnproven && s.Kind != gpuinfo.MIGUnproven {
			proven = true
		}
		if g.Resources.Has(raydemand.GPU) > 0 {
			withGPUs++
		}
		var priced []string
		for k := range d.Groups {
			if g.Price == nil && of[k] == of[i] && d.Groups[k].Price != nil {
				priced = append(priced, d.Groups[k].Name)
			}
		}
		if len(priced) > 0 {
			add(model.FindingUnpriced, raydemand.Info, "group "+g.Name, "price", "",
				fmt.Sprintf("%s could serve the same work and %s a price; because this group has none, the plan "+
					"compares all of them by accelerators, CPUs and memory",
					joined(priced), model.OneOrMany(int64(len(priced)), "has", "have")),
				"set the group's price")
		}
	}
	for i := range d.Groups {
		if g := &d.Groups[i]; g.Blocked == model.CodeInvalidLimits {
			add(model.FindingMinAboveMax, raydemand.Error, "group "+g.Name, "minReplicas", fmt.Sprint(g.Min),
				fmt.Sprintf("above maxReplicas %d; the operator stops reconciling the whole cluster, so the plan "+
					"leaves the group as it is", g.Max),
				"lower minReplicas or raise maxReplicas")
		}
	}
	if d.Sliced && withGPUs > 0 && !proven {
		add(model.FindingSlicesUnknown, raydemand.Warning, "snapshot", "groups", fmt.Sprintf("%d with GPUs", withGPUs),
			"nothing proves what the GPUs of any group are, so demand with requirements for GPU memory, compute or "+
				"isolation is not served; other demand is planned by the resources that groups declare",
			"let Heliostat read nodes (in a snapshot file: kubeNodes beside rayCluster, or slice in each group); if "+
				"it reads them, run GPU feature discovery there, or set --resource NAME=KIND: `autoscaler nodepools` "+
				"shows what the nodes prove")
	}
	policy := cmp.Or(d.WarmPolicy, "capacity policy")
	for k := range d.Warm {
		switch e := &d.Warm[k]; {
		case e.Item == nil && e.Group < 0:
			all = append(all, capacity.GroupUnknown(policy, e.Name, e.WarmEntry.Group, capacity.NoWorkers))
		case e.Item != nil && !d.Possible(e.Item):
			add(model.FindingWarmImpossible, raydemand.Error, policy, e.Name, model.Describe(e.Request()),
				"no worker group could ever hold it, so nothing is kept warm for it",
				"ask for what one worker of some group has")
		}
	}
	return all
}
