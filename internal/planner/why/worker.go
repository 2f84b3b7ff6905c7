package why

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/place"
	"heliostat.dev/heliostat/pkg/raydemand"
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

// Busy explains why Ray does not report a node that has joined as idle: one reason for each cause, work first. There
// is at least one: snapshots written by hand have no activity, and a worker that has just joined has none until Ray
// reports its load.
func Busy(n *model.Node) (causes []model.Reason) {
	activity, use := raydemand.ReadActivity(n.Activity), inUse(n)
	uses, unused := model.Describe(raydemand.Request{Bundle: use}), use != nil && len(use) == 0
	switch {
	case len(n.Activity) == 0 && unused:
		return []model.Reason{freeButBusy.with()}
	case len(n.Activity) == 0:
		return []model.Reason{hasWork.with()}
	case activity.Workers && unused:
		causes = append(causes, uncounted.with())
	case activity.Workers && len(n.PlacedLabels) > 0 && use != nil:
		causes = append(causes, works.with("; they use, or placement groups reserve, "+uses))
	case activity.Workers:
		causes = append(causes, works.with(strings.TrimSuffix(", which use "+uses, ", which use {}")))
	}
	if activity.Arguments {
		causes = append(causes, arguments.with())
	}
	if activity.Objects {
		size, held := "", n.Total[raydemand.ObjectStoreMemory]-n.Available[raydemand.ObjectStoreMemory]
		if held > 0 {
			size = fmt.Sprintf(" (%s)", model.Memory(int64(held.Float())))
		}
		objects := objectsOnly
		if activity.Workers {
			objects = objectsAfter
		}
		causes = append(causes, objects.with(size))
	}
	if len(use) == 0 {
		uses = joined(activity.Resources)
	}
	switch {
	case activity.Workers || len(activity.Resources) == 0:
	case len(n.PlacedLabels) > 0:
		causes = append(causes, reserved.with(uses))
	default:
		causes = append(causes, workerStarts.with(uses))
	}
	for _, text := range activity.Unknown {
		causes = append(causes, unknownUse.with(text))
	}
	return causes
}

// plainlyBusy reports that a node has work on its GPUs, or CPUs, as most do: Busy takes a hundred times as long.
func plainlyBusy(n *model.Node) bool {
	return n.Available != nil && n.Available[n.Main()] < n.Total[n.Main()] &&
		slices.Contains(n.Activity, raydemand.ActiveWorkers)
}

// inUse returns what is in use of a node, without its object store and without the resources that Ray adds to each
// node; nil if Ray does not report what the node has, or what of it is free.
func inUse(n *model.Node) raydemand.Bundle {
	switch {
	case len(n.Total) == 0 && n.Available == nil && len(n.Resources) > 0:
		return raydemand.Bundle{} // all of it is free
	case len(n.Total) == 0 || n.Available == nil:
		return nil
	}
	use := n.InUse()
	maps.DeleteFunc(use, func(name string, _ raydemand.Amount) bool {
		return strings.HasPrefix(name, raydemand.ImplicitPrefix)
	})
	return use
}

// addStates counts the group's pods by state, and those that are not idle by what keeps them busy.
func (d *decision) addStates(e *model.Explanation, i int) {
	g := &d.Groups[i]
	count := map[string]int64{model.PodPending: g.Pending(), model.PodLeaving: g.Leaving, model.PodGivenUp: g.TimedOut}
	for at := range d.Nodes {
		switch n := &d.Nodes[at]; {
		case n.GroupIndex != i || n.Stop != "":
		case n.State == model.Running:
			count[Busy(n.Node)[0].Code]++
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
	return Busy(n.Node)[0]
}
