package planner

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/raydemand"
)

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
		about := c.purpose
		if about == overREST {
			about = "requests over REST" // those of owners are among them
		}
		for _, it := range c.items {
			e.Details = append(e.Details, Detail{about + " " + counted(it), p.groupVerdict(i, it, given, &out)})
		}
	}
	return e, true
}

func counted(it *item) string { return fmt.Sprintf("%d × %s", it.request.Count, Describe(it.request)) }

// podStates counts the group's pods by what they do.
func (r *reporter) podStates(i int) []Detail {
	g := &r.groups[i]
	var busy, idle int64
	for at := range r.nodes {
		switch n := &r.nodes[at]; {
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

func (r *reporter) podReason(at int, out *outcome) Reason {
	n := &r.nodes[at]
	switch {
	case n.stop != "" && n.State == Running:
		return Reason{n.stop, n.stopMessage + Termination{Reason: n.stop, Busy: true}.Parting()}
	case n.stop != "":
		return Reason{n.stop, n.stopMessage}
	case n.group == headGroup:
		return Reason{PodHead, "it is the head: it serves demand and is never launched or stopped"}
	case n.State == Pending:
		text := "it has not joined Ray yet"
		if !n.Since.IsZero() && n.Since.Before(r.takenAt) {
			text += ", for " + Span(r.takenAt.Sub(n.Since).Seconds())
		}
		return Reason{PodPending, text + "; it counts as what its group brings"}
	case out.isHeldOver(at):
		return Reason{CodeHeldOver, fmt.Sprintf("idle for %s%s", Span(n.IdleSeconds), r.staysIdle(at, out))}
	case n.State == Idle:
		return Reason{PodIdle, fmt.Sprintf("idle for %s%s", Span(n.IdleSeconds), r.staysIdle(at, out))}
	case slices.Equal(n.free, n.shape.total): // one that has just joined, or work that asks for nothing
		return Reason{PodBusy, "all that it has is free, but Ray does not call it idle"}
	}
	return Reason{PodBusy, "it has work, so it is not idle"}
}

func (p *reporter) podDetails(at int, out *outcome) []Detail {
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
