package report

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/reasons"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// group explains one group's size: its reasons, its pods, and how each demand relates to it. It reports false if the
// snapshot has no such group.
func (a asker) group(s model.Snapshot, name string) (model.Explanation, bool) {
	p, given, out := a.decide(&s)
	i := slices.IndexFunc(p.Groups, func(g fleet.Group) bool { return g.Name == name })
	if i < 0 {
		return model.Explanation{}, false
	}
	row := p.row(i, given, &out)
	size := fmt.Sprintf("%s, each %s", row.Size(), phrase.Describe(raydemand.Request{Bundle: p.Groups[i].Resources}))
	e := model.Explanation{About: "group " + name, Reason: row.Reasons[0], Details: []model.Detail{
		{About: "size", Reason: model.Reason{Code: row.Reasons[0].Code, Message: size}},
	}}
	for _, reason := range row.Reasons[1:] {
		e.Details = append(e.Details, model.Detail{About: "pods", Reason: reason})
	}
	e.Details = append(e.Details, p.podStates(i)...)
	add := func(about string, items []*vector.Item) {
		for _, it := range items {
			verdict := p.groupVerdict(i, it, given, &out)
			e.Details = append(e.Details, model.Detail{About: about + " " + counted(it), Reason: verdict})
		}
	}
	add("demand", p.Requests)
	for _, gang := range p.Gangs {
		for k, o := range gang.Options {
			about := strings.TrimSpace("gang " + gang.ID)
			if choice := phrase.Choice(k, len(gang.Options)); choice != "" {
				about += ", " + choice + ":"
			}
			add(about, o.Items)
		}
	}
	for _, c := range p.Claims {
		about := c.Purpose
		if about == search.OverREST {
			about = "requests over REST" // includes the requests of owners
		}
		add(about, c.Items)
	}
	return e, true
}

func counted(it *vector.Item) string {
	return fmt.Sprintf("%d × %s", it.Request.Count, phrase.Describe(it.Asked()))
}

// podStates counts the group's pods by state, and those that are not idle by what keeps them busy.
func (r *Reporter) podStates(i int) []model.Detail {
	g := &r.Groups[i]
	count := map[string]int64{
		model.PodPending: g.Live - g.Joined + g.Missing,
		model.PodLeaving: g.Leaving,
		model.PodGivenUp: g.TimedOut,
	}
	for at := range r.Nodes {
		switch n := &r.Nodes[at]; {
		case n.GroupIndex != i || n.Stop != "":
		case n.State == model.Running:
			count[reasons.WhyBusy(n.Node)[0].Code]++
		case n.State == model.Idle:
			count[model.PodIdle]++
		}
	}
	var details []model.Detail
	for _, state := range []struct{ code, does string }{
		{model.PodBusy, "with work"},
		{model.CodeUncounted, "with work that holds no resources"},
		{model.PodArguments, "with a task that waits for its arguments"},
		{model.CodeHoldsObjects, "without work, with primary copies of objects"},
		{model.CodeReserved, "without work, reserved by placement groups"},
		{model.PodUnexplained, "not idle, for a cause that Ray does not report"},
		{model.PodIdle, "idle"},
		{model.PodPending, "on their way"},
		{model.PodLeaving, "leaving"},
		{model.PodGivenUp, "given up"},
	} {
		if n := count[state.code]; n > 0 {
			text := fmt.Sprintf("%d %s", n, state.does)
			if state.code == model.PodPending {
				text += r.arrivals(i)
			}
			details = append(details, model.Detail{
				About: "pods", Reason: model.Reason{Code: state.code, Message: text},
			})
		}
	}
	return details
}

// pod explains why one pod stays or stops. It reports false if the snapshot has no such pod.
func (a asker) pod(s model.Snapshot, name string) (model.Explanation, bool) {
	p, _, out := a.decide(&s)
	e := model.Explanation{About: "pod " + name, Details: []model.Detail{}}
	if at := slices.IndexFunc(p.Nodes, func(n fleet.Node) bool { return n.Pod == name }); at >= 0 {
		e.Reason = p.podReason(at, &out)
		if going := p.Nodes[at].Going; going != nil {
			e.Message = going.Text("") + "; " + e.Message
		}
		e.Details = append(e.Details, p.podDetails(at, &out)...)
		return e, true
	}
	// The fleet leaves out nodes that do not count.
	at := slices.IndexFunc(s.Nodes, func(n model.Node) bool { return n.Pod == name })
	if at < 0 {
		return model.Explanation{}, false
	}
	switch n := &s.Nodes[at]; n.State {
	case model.Leaving:
		e.Reason = model.Reason{
			Code: model.PodLeaving,
			Message: "it is draining or being deleted; it serves nothing, " +
				"but counts toward its group's limits until it is gone",
		}
		if n.Going != nil {
			e.Message = n.Going.Text("") + "; " + e.Message
		}
		if len(n.Activity) > 0 {
			e.Details = activities(reasons.WhyBusy(n))
		}
	case model.AllocationTimeout:
		e.Reason = model.Reason{
			Code:    model.PodGivenUp,
			Message: "it did not join Ray in time and does not count; other pods serve the demand",
		}
	default:
		e.Reason = model.Reason{
			Code: model.PodRemoved,
			Message: fmt.Sprintf(
				"the snapshot has no worker group %q, so the plan ignores the pod: "+
					"it places no demand on it and does not stop it",
				n.Group,
			),
		}
	}
	return e, true
}

// activities are the details of what keeps a pod busy.
func activities(causes []model.Reason) []model.Detail {
	details := []model.Detail{}
	for _, cause := range causes {
		details = append(details, model.Detail{About: "activity", Reason: cause})
	}
	return details
}

func (r *Reporter) podReason(at int, out *search.Outcome) model.Reason {
	n := &r.Nodes[at]
	switch {
	case n.Stop != "" && n.State == model.Running:
		return model.Reason{
			Code:    n.Stop,
			Message: n.StopMessage + model.Termination{Reason: n.Stop, Busy: true}.Parting(),
		}
	case n.Stop != "":
		return model.Reason{Code: n.Stop, Message: n.StopMessage}
	case n.GroupIndex == fleet.HeadGroup:
		return model.Reason{
			Code:    model.PodHead,
			Message: "it is the head: it serves demand and is never launched or stopped",
		}
	case n.State == model.Pending:
		return model.Reason{Code: model.PodPending, Message: "it has not joined Ray yet" + r.lasting(n.Since) +
			r.arrival(n.Arrival) + "; it counts with its group's resources"}
	case out.IsHeldOver(at):
		return model.Reason{
			Code:    model.CodeHeldOver,
			Message: fmt.Sprintf("idle for %s%s", phrase.Span(n.IdleSeconds), r.StaysIdle(at, out)),
		}
	case n.State == model.Idle:
		return model.Reason{
			Code:    model.PodIdle,
			Message: fmt.Sprintf("idle for %s%s", phrase.Span(n.IdleSeconds), r.StaysIdle(at, out)),
		}
	}
	return reasons.WhyBusy(n.Node)[0]
}

func (r *Reporter) podDetails(at int, out *search.Outcome) []model.Detail {
	n := &r.Nodes[at]
	var details []model.Detail
	if n.State == model.Running && n.GroupIndex != fleet.HeadGroup {
		details = activities(reasons.WhyBusy(n.Node)[1:])
	}
	if n.GroupIndex == fleet.UnknownGroup {
		return details
	}
	for name, total := range r.Named(n.Shape.Total) {
		if total > 0 && !strings.HasPrefix(r.Names[name], raydemand.ImplicitPrefix) {
			details = append(details, model.Detail{About: r.Names[name], Reason: model.Reason{Code: model.PodRoom,
				Message: phrase.FreeOf(r.Names[name], n.Free[name], total)}})
		}
	}
	if out.IsHeldOver(at) {
		details = append(
			details,
			model.Detail{
				About: "demand",
				Reason: model.Reason{
					Code:    model.DispositionServed,
					Message: "REST requests are placed here until then",
				},
			},
		)
	} else if out.Used[at] {
		details = append(
			details,
			model.Detail{
				About:  "demand",
				Reason: model.Reason{Code: model.DispositionServed, Message: "some waiting demand is placed here"},
			},
		)
	}
	return details
}
