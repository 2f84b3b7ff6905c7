package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// report writes the plan down, sorted: groups by name, terminations by pod, unmet demand as it was planned.
func (p *planning) report(given []int64, out outcome) Plan {
	plan := Plan{
		Launch: map[string]int{}, Terminate: []Termination{}, Groups: []GroupPlan{},
		InfeasibleRequests: []UnmetRequest{}, InfeasibleGangRequests: []UnmetGang{}, InfeasibleRequestResources: []UnmetRequest{},
		Findings: slices.Concat(p.findings, p.limitFindings(), p.sliceFindings(), p.shareFindings()),
	}
	for i := range p.groups {
		if given[i] > 0 {
			plan.Launch[p.groups[i].Name] = int(given[i])
		}
		plan.Groups = append(plan.Groups, p.row(i, given, &out))
	}
	plan.Terminate = p.terminations()
	unmet := p.unmetReasons(given, &out)
	p.reportUnmet(&plan, &out, &unmet)
	plan.Summary = p.summarize(&out, &unmet)
	plan.Requests = p.requestPlans(given, &out)
	plan.Price = p.price(given)
	return plan
}

// limitFindings tells of groups whose limits no number of pods can keep; they are left as they are.
func (p *planning) limitFindings() []raydemand.Finding {
	var all []raydemand.Finding
	for i := range p.groups {
		if g := &p.groups[i]; g.shut.Code == CodeInvalidLimits {
			all = append(all, raydemand.Finding{
				Code: FindingMinAboveMax, Severity: raydemand.Error, Object: "group " + g.Name, Field: "minReplicas", Seen: strconv.Itoa(g.Min),
				Why: fmt.Sprintf("above maxReplicas %d, with which the operator stops the whole cluster; the group is left as it is", g.Max),
				Fix: "lower minReplicas or raise maxReplicas",
			})
		}
	}
	return all
}

func (p *planning) row(i int, given []int64, out *outcome) GroupPlan {
	g := &p.groups[i]
	return GroupPlan{
		Name: g.Name, Current: int(g.current), Desired: int(max(0, g.current+given[i]-p.stoppedPods(i))),
		Min: int(g.min), Max: int(g.max), Held: int(p.heldOf(i)), Resources: g.Resources.Clone(), Reasons: p.reasons(i, given, out),
		BelowMin: int(p.belowMinimum(i, given)), Slice: g.Slice,
	}
}

// stoppedPods counts the pods that a group gives up, whole replicas where it stops any host of one.
func (p *planning) stoppedPods(i int) int64 {
	hosts := p.groups[i].hosts
	if hosts == 1 {
		return p.groups[i].stopping
	}
	byReplica := map[string]int64{}
	for at := range p.nodes {
		if n := &p.nodes[at]; n.group == i && n.stop != "" {
			byReplica[n.Replica]++
		}
	}
	var stopped int64
	for _, n := range byReplica {
		stopped += roundUp(n, hosts)
	}
	return stopped
}

func (p *planning) terminations() []Termination {
	stops := []Termination{}
	for i := range p.nodes {
		if n := &p.nodes[i]; n.stop != "" {
			stops = append(stops, Termination{Pod: n.Pod, Group: n.Group, Reason: n.stop, Busy: n.State == Running, Message: n.stopMessage})
		}
	}
	slices.SortFunc(stops, func(a, b Termination) int { return cmp.Compare(a.Pod, b.Pod) })
	return stops
}

// unmetReasons says why what is not served is not: requests and claims by their place, gangs by their number.
type unmetReasons struct {
	requests []Reason
	gangs    map[int]*Reason
	claims   map[int][]Reason
}

func (p *planning) unmetReasons(given []int64, out *outcome) unmetReasons {
	unmet := unmetReasons{requests: make([]Reason, len(p.requests)), gangs: map[int]*Reason{}, claims: map[int][]Reason{}}
	for i, n := range out.unserved {
		if n > 0 {
			unmet.requests[i] = p.unmetReason([]*item{p.requests[i]}, given, "")
			unmet.requests[i].Message = sentences(unmet.requests[i].Message, p.advice(p.requests[i], given, n))
		}
	}
	alike := map[string]*Reason{} // gangs that hold no nodes yet
	for _, g := range out.gangs {
		if known := alike[g.key]; known != nil && !g.held {
			unmet.gangs[g.number] = known
			continue
		}
		reason := p.gangReason(g, given)
		unmet.gangs[g.number] = &reason
		if !g.held {
			alike[g.key] = &reason
		}
	}
	for _, i := range out.claims {
		unmet.claims[i] = p.claimReasons(p.claims[i], given)
	}
	return unmet
}

// claimReasons says of each bundle of a call why it is not served. Each is told its own reason; one that could be had but for others of a call
// from within Ray, of which Ray has all or nothing, is told which other stands in the way.
func (p *planning) claimReasons(c claim, given []int64) []Reason {
	reasons := make([]Reason, len(c.items))
	blocked := -1
	for k, it := range c.items {
		reasons[k] = p.unmetReason([]*item{it}, given, "")
		if blocked < 0 && reasons[k].Code == Impossible {
			blocked = k
		}
	}
	whole := p.unmetReason(c.items, given, "")
	for k, it := range c.items {
		switch {
		case c.purpose == overREST || !p.possible(it):
		case blocked >= 0:
			reasons[k] = Reason{Impossible, fmt.Sprintf("with %s of the same call, all at once: %s", Describe(c.items[blocked].request), reasons[blocked].Message)}
		default:
			reasons[k] = whole
		}
	}
	for k, it := range c.items {
		reasons[k].Message = sentences(reasons[k].Message, p.advice(it, given, it.request.Count))
	}
	return reasons
}

func (p *planning) reportUnmet(plan *Plan, out *outcome, unmet *unmetReasons) {
	for i, n := range out.unserved {
		if n > 0 {
			rest := p.requests[i].request
			rest.Count = n
			plan.InfeasibleRequests = append(plan.InfeasibleRequests, UnmetRequest{Request: rest, Reason: unmet.requests[i]})
		}
	}
	for _, g := range out.gangs {
		plan.InfeasibleGangRequests = append(plan.InfeasibleGangRequests, UnmetGang{*g.Gang, *unmet.gangs[g.number]})
	}
	refused := p.refusedClaimants()
	for i, c := range p.claims {
		if reasons, failed := unmet.claims[i]; failed {
			left := out.leftOf(i, c)
			for k, it := range c.items {
				rest := it.request
				if rest.Count = left[k]; rest.Count > 0 {
					unserved := UnmetRequest{Request: rest, Reason: reasons[k]}
					if c.refused {
						unserved.AskedBy = refused.askedBy(it)
					}
					plan.InfeasibleRequestResources = append(plan.InfeasibleRequestResources, unserved)
				}
			}
		}
	}
}

// price adds up what is launched; it is known only when every launched group has a price.
func (p *planning) price(given []int64) *float64 {
	var total float64
	priced := false
	for i, n := range given {
		if n == 0 {
			continue
		}
		if p.groups[i].Price == nil {
			return nil
		}
		total += *p.groups[i].Price * float64(n)
		priced = true
	}
	if !priced {
		return nil
	}
	return &total
}
