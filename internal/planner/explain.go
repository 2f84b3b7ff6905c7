package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Explanation says what a plan does with one demand, one group or one pod, and why.
type Explanation struct {
	About string `json:"about"`
	Reason
	// Details say it of each group, demand and pod that was considered.
	Details []Detail `json:"details"`
}

// Detail is one thing that was considered.
type Detail struct {
	About string `json:"about"`
	Reason
}

// What becomes of a demand, beside the codes of unmet demand.
const (
	FateServed    = "served"    // fits on what runs now
	FateWaiting   = "waiting"   // counts on pods that were asked for earlier
	FateLaunching = "launching" // counts on pods that the plan launches
)

// What a pod is, beside the codes of a termination.
const (
	PodBusy    = "busy"       // has work
	PodIdle    = "idle_stays" // is idle and stays for now
	PodPending = "on_the_way" // has not joined Ray yet
	PodLeaving = "leaving"    // is drained or being deleted
	PodGivenUp = "given_up"   // did not join in time and counts for nothing
	PodRemoved = "group_gone" // its group is not in the snapshot
	PodHead    = "head"       // serves demand and is never stopped
	PodRoom    = "room"       // has this much room now
)

// asking is how a question is answered: by which policy, until nobody waits for the answer any more; a nil stop never is closed.
type asking struct {
	policy Policy
	stop   <-chan struct{}
}

func (a asking) decide(s *Snapshot) (p *planning, given []int64, out outcome) {
	return decideUntil(a.stop, s, a.policy)
}

// demand explains what becomes of a request: all pending ones with these resources, and with these selectors if it
// has any. Where fewer wait in the snapshot than the request counts, it is planned as if so many did.
func (a asking) demand(s Snapshot, r raydemand.Request) Explanation {
	r.Count = max(r.Count, 1)
	same := func(other raydemand.Request) bool {
		return other.Bundle.Equal(r.Bundle) && other.Slice.Equal(r.Slice) && (len(r.Selectors) == 0 || slices.EqualFunc(other.Selectors, r.Selectors,
			func(a, b raydemand.Selector) bool { return a.String() == b.String() }))
	}
	var waiting int64
	for _, other := range s.Requests {
		if same(other) {
			waiting = min(waiting+max(other.Count, 0), maxCount)
		}
	}
	if more := r.Count - waiting; more > 0 {
		added := r
		added.Count = more
		s.Requests = append(slices.Clone(s.Requests), added)
	}
	p, given, out := a.decide(&s)
	e := p.explainRequests(same, given, &out)
	e.About = "demand " + Describe(r)
	switch {
	case waiting == 0 && r.Count == 1:
		e.Message = "no task waits for it in the snapshot; if one did: " + e.Message
	case waiting == 0:
		e.Message = fmt.Sprintf("no task waits for it in the snapshot; if %d did: %s", r.Count, e.Message)
	case waiting < r.Count:
		e.Message = fmt.Sprintf("%d in the snapshot; if it were %d: %s", waiting, r.Count, e.Message)
	}
	e.Details = append(e.Details, p.elsewhere(r.Bundle, given, &out)...)
	return e
}

// explainRequests says what becomes of the pending requests that are the same as one, and what each of its choices of labels
// and each group has to do with it.
func (p *planning) explainRequests(same func(raydemand.Request) bool, given []int64, out *outcome) Explanation {
	unmet := p.unmetReasons(given, out)
	fates := out.fates()
	e := Explanation{Details: []Detail{}}
	var all DemandSummary
	var first *item
	for i, it := range p.requests {
		if !same(it.request) {
			continue
		}
		if first == nil {
			first = it
		}
		all.Kind, all.Resources, all.Selectors = KindRequest, it.request.Bundle, slices.Concat(all.Selectors, it.request.Selectors)
		all.Join(summaryOf(KindRequest, it, fates[it], out.unserved[i], unmet.requests[i].Code))
		if e.Message == "" {
			e.Message = unmet.requests[i].Message
		}
	}
	e.Code = all.verdict()
	e.Message = strings.TrimSuffix(p.tally(&all)+": "+e.Message, ": ")
	e.Details = append(e.Details, p.choices(first, given, out)...)
	for i := range p.groups {
		e.Details = append(e.Details, p.groupDetails(i, first, given, out)...)
	}
	return e
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

func (p *planning) tally(d *DemandSummary) string {
	waitingFor := ""
	if !d.WaitingSince.IsZero() && d.WaitingSince.Before(p.takenAt) {
		waitingFor = ", the oldest for " + duration(p.takenAt.Sub(d.WaitingSince).Seconds())
	}
	return fmt.Sprintf("%d asked, %s", d.Asked, d.tally(waitingFor))
}

// groupDetails says of one group whether its new pods and its present ones could serve an item.
func (p *planning) groupDetails(i int, it *item, given []int64, out *outcome) []Detail {
	g := &p.groups[i]
	details := []Detail{{"group " + g.Name, p.groupVerdict(i, it, given, out)}}
	var room, there int
	for at := range p.nodes {
		if n := &p.nodes[at]; n.group == i && n.stop == "" && n.State != Pending {
			there++
			if it.rank[n.shape.labels] != noMatch && n.free.times(it.need, 1) == 1 {
				room++
			}
		}
	}
	if there > 0 {
		details = append(details, Detail{"pods of group " + g.Name, Reason{PodRoom,
			fmt.Sprintf("%d of the %d that have joined have room for one now", room, there)}})
	}
	return details
}

func (p *planning) groupVerdict(i int, it *item, given []int64, out *outcome) Reason {
	p.breakOff()
	var own, others int64
	by := -1
	for _, e := range out.log {
		switch {
		case e.item != it:
		case e.group == i:
			own += e.count
		default:
			others, by = others+e.count, e.group
		}
	}
	if own > 0 {
		return Reason{CodeLaunch, fmt.Sprintf("%s launched, with places for %d of it%s", areLaunched(given[i]), own, p.byChoice(it, i))}
	}
	if reason, ok := p.obstacle(i, it, given); ok {
		return reason
	}
	if others > 0 {
		return p.preferred(candidate{it, by}, i, given, out)
	}
	if p.waitsStill(it, out) {
		return Reason{CodeNotInFull, "it " + notInFull}
	}
	if reason, short := p.tightest(i, given); p.fellBack(it, out) && short < bundlesOf([]*item{it}) {
		reason.Message = "the gang goes by a later choice: " + reason.Message
		return reason
	}
	return Reason{CodeNotNeeded, "its pods would do, and none is needed for it"}
}

// fellBack reports whether the gang that an item is of was placed by a later choice.
func (p *planning) fellBack(it *item, out *outcome) bool {
	owner, ok := p.owner(it)
	return ok && slices.ContainsFunc(out.runs, func(r run) bool { return r.option > owner.option && slices.Contains(r.gangs, owner.gang) })
}

// waitsStill reports whether some of an item, or of the gang or the call that it is part of, is not served.
func (p *planning) waitsStill(it *item, out *outcome) bool {
	if at := slices.Index(p.requests, it); at >= 0 {
		return out.unserved[at] > 0
	}
	return slices.ContainsFunc(out.gangs, func(g *gang) bool { return slices.Contains(g.items(), it) }) ||
		slices.ContainsFunc(out.claims, func(i int) bool { return slices.Contains(p.claims[i].items, it) })
}

func areLaunched(n int64) string {
	if n == 1 {
		return "1 pod is"
	}
	return fmt.Sprintf("%d pods are", n)
}

// group explains one group's size: its reasons, its pods, and what each demand finds in it. It reports false when
// the snapshot has no such group.
func (a asking) group(s Snapshot, name string) (Explanation, bool) {
	p, given, out := a.decide(&s)
	i := slices.IndexFunc(p.groups, func(g group) bool { return g.Name == name })
	if i < 0 {
		return Explanation{}, false
	}
	row := p.row(i, given, &out)
	g := &p.groups[i]
	e := Explanation{About: "group " + name, Reason: row.Reasons[0], Details: []Detail{
		{"size", Reason{row.Reasons[0].Code, fmt.Sprintf("%s, each %s", row.Size(), Describe(raydemand.Request{Bundle: g.Resources}))}}}}
	for _, reason := range row.Reasons[1:] {
		e.Details = append(e.Details, Detail{"pods", reason})
	}
	e.Details = append(e.Details, p.podStates(i)...)
	for _, it := range p.requests {
		e.Details = append(e.Details, Detail{"demand " + counted(it), p.groupVerdict(i, it, given, &out)})
	}
	for _, gang := range p.gangs {
		for k, o := range gang.options {
			about := strings.TrimSpace("gang " + gang.ID)
			if choice := choiceOf(k, len(gang.options)); choice != "" {
				about += ", " + choice + ":"
			}
			for _, it := range o.items {
				e.Details = append(e.Details, Detail{about + " " + counted(it), p.groupVerdict(i, it, given, &out)})
			}
		}
	}
	for _, c := range p.claims {
		for _, it := range c.items {
			e.Details = append(e.Details, Detail{c.purpose + " " + counted(it), p.groupVerdict(i, it, given, &out)})
		}
	}
	return e, true
}

func counted(it *item) string { return fmt.Sprintf("%d × %s", it.request.Count, Describe(it.request)) }

// podStates counts the group's pods by what they do.
func (p *planning) podStates(i int) []Detail {
	g := &p.groups[i]
	var busy, idle int64
	for at := range p.nodes {
		switch n := &p.nodes[at]; {
		case n.group != i || n.stop != "":
		case n.State == Running:
			busy++
		case n.State == Idle:
			idle++
		}
	}
	var details []Detail
	for _, state := range []struct {
		count int64
		code  string
		does  string
	}{
		{busy, PodBusy, "with work"}, {idle, PodIdle, "idle"}, {g.live - g.joined + g.missing, PodPending, "on their way"},
		{g.leaving, PodLeaving, "leaving"}, {g.timedOut, PodGivenUp, "given up"},
	} {
		if state.count > 0 {
			details = append(details, Detail{"pods", Reason{state.code, fmt.Sprintf("%d %s", state.count, state.does)}})
		}
	}
	return details
}

// pod explains why one pod stays or goes. It reports false when the snapshot has no such pod.
func (a asking) pod(s Snapshot, name string) (Explanation, bool) {
	p, _, out := a.decide(&s)
	e := Explanation{About: "pod " + name, Details: []Detail{}}
	if at := slices.IndexFunc(p.nodes, func(n node) bool { return n.Pod == name }); at >= 0 {
		e.Reason = p.podReason(at, &out)
		e.Details = append(e.Details, p.podDetails(at, &out)...)
		return e, true
	}
	// Those that count for nothing are not on the roster.
	at := slices.IndexFunc(s.Nodes, func(n Node) bool { return n.Pod == name })
	if at < 0 {
		return Explanation{}, false
	}
	switch n := &s.Nodes[at]; n.State {
	case Leaving:
		e.Reason = Reason{PodLeaving, "it is drained or being deleted; it serves nothing and fills its group until it is gone"}
	case AllocationTimeout:
		e.Reason = Reason{PodGivenUp, "it did not join Ray in time and counts for nothing; others serve the demand"}
	default:
		e.Reason = Reason{PodRemoved, fmt.Sprintf("the snapshot has no worker group %q, so the pod is left out of the plan: no demand is placed on it, and it is not stopped", n.Group)}
	}
	return e, true
}

func (p *planning) podReason(at int, out *outcome) Reason {
	n := &p.nodes[at]
	switch {
	case n.stop != "" && n.State == Running:
		return Reason{n.stop, n.stopMessage + Termination{Reason: n.stop, Busy: true}.Parting()}
	case n.stop != "":
		return Reason{n.stop, n.stopMessage}
	case n.group == headGroup:
		return Reason{PodHead, "it is the head: it serves demand and is never launched or stopped"}
	case n.State == Pending:
		text := "it has not joined Ray yet"
		if !n.Since.IsZero() && n.Since.Before(p.takenAt) {
			text += ", for " + duration(p.takenAt.Sub(n.Since).Seconds())
		}
		return Reason{PodPending, text + "; it counts as what its group brings"}
	case out.isHeldOver(at):
		return Reason{CodeHeldOver, fmt.Sprintf("idle for %s%s", seconds(n.IdleSeconds), p.staysIdle(at, out))}
	case n.State == Idle:
		return Reason{PodIdle, fmt.Sprintf("idle for %s%s", seconds(n.IdleSeconds), p.staysIdle(at, out))}
	}
	return Reason{PodBusy, "it has work, so it is not idle"}
}

func (p *planning) podDetails(at int, out *outcome) []Detail {
	n := &p.nodes[at]
	var details []Detail
	if n.group == unknownGroup {
		return nil
	}
	for r, total := range p.named(n.shape.total) {
		if total > 0 && !strings.HasPrefix(p.names[r], raydemand.ImplicitPrefix) {
			details = append(details, Detail{p.names[r], Reason{PodRoom,
				freeOf(p.names[r], n.free[r], total)}})
		}
	}
	if out.isHeldOver(at) {
		details = append(details, Detail{"demand", Reason{FateServed, "requests over REST have their place here until then"}})
	} else if out.used[at] {
		details = append(details, Detail{"demand", Reason{FateServed, "some of what waits has its place here"}})
	}
	return details
}
