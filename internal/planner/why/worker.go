package why

import (
	"fmt"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
)

// staysIdle explains why an idle worker is not stopped. The code is one of those of planner.WhyUnused.
func (d *decision) staysIdle(at int) (code, text string) {
	n := &d.Nodes[at]
	g, stay, warm := &d.Groups[n.GroupIndex], d.out.Stays[at], d.WarmFor(d.out, at)
	code = model.UnusedKept
	switch {
	case g.Timeout == nil:
		code, text = model.UnusedNoTimeout, "; no idle timeout is set"
	case n.IdleSeconds <= *g.Timeout:
		code, text = model.UnusedTimeout, " of "+model.Span(*g.Timeout)
	case g.Remaining() <= g.MinPods:
		code, text = model.UnusedMinimum, fmt.Sprintf("; kept for the minimum of %d", g.MinPods)
	case warm != nil:
		text = "; kept warm for " + warm.Name
	case stay == 0 && g.Hosts > 1:
		code, text = model.UnusedReplica, "; kept until all hosts of the replica are idle and the minimum allows it"
	default:
		text = map[place.Stay]string{
			place.HeldOver: "; kept until its replacement has joined Ray",
			place.Spared:   "; kept because too much demand waits for one plan, and the rest could need it",
			place.Needed:   "; kept for demand that is placed on it",
			0:              "; kept",
		}[stay]
	}
	if warm != nil {
		code = model.UnusedWarm
	}
	return code, text
}

// stays lists why idle workers stay, by pod; nil if none does.
func (d *decision) stays() (all map[string]string) {
	for at := range d.Nodes {
		if n := &d.Nodes[at]; n.State == model.Idle && n.Stop == "" && n.GroupIndex >= 0 {
			if all == nil {
				all = map[string]string{}
			}
			all[n.Pod], _ = d.staysIdle(at)
		}
	}
	return all
}

// addStates counts the group's pods by state, and those that are not idle by what keeps them busy.
func (d *decision) addStates(e *model.Explanation, i int) {
	g := &d.Groups[i]
	count := map[string]int64{model.PodPending: g.Pending(), model.PodLeaving: g.Leaving, model.PodGivenUp: g.TimedOut}
	for at := range d.Nodes {
		switch n := &d.Nodes[at]; {
		case n.GroupIndex != i || n.Stop != "":
		case n.State == model.Running:
			count[n.Busy()[0].Code]++
		case n.State == model.Idle:
			count[model.PodIdle]++
		}
	}
	for _, state := range states {
		if n := count[state.code]; n > 0 {
			reason := state.with(n)
			if state.code == model.PodPending {
				reason.Message += d.arrivals(i)
			}
			e.Add("pods", reason)
		}
	}
}

func (d *decision) podReason(at int) model.Reason {
	n := &d.Nodes[at]
	switch {
	case n.Stop != "":
		parting := model.Termination{Reason: n.Stop, Busy: n.State == model.Running}.Parting()
		return model.Reason{Code: n.Stop, Message: n.StopMessage + parting}
	case n.GroupIndex == place.HeadGroup:
		return isHead.with()
	case n.State == model.Pending:
		return podComing.with(d.lasting(", for ", n.Since), d.arrival(n.Arrival))
	case n.State == model.Idle || d.out.Stays[at] == place.HeldOver:
		_, why := d.staysIdle(at)
		reason := idleFor.with(model.Span(n.IdleSeconds), why)
		if d.out.Stays[at] == place.HeldOver {
			reason.Code = model.CodeHeldOver
		}
		return reason
	}
	return n.Busy()[0]
}
