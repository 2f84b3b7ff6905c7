package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// emitConditions emits each lasting condition once, when it begins, in a fixed order.
func (c *Controller) emitConditions(ctx context.Context, r *record, o *addon.Cycle) {
	v := o.View
	if v.Mode == nodepool.Off {
		return
	}
	all := modeEvents(v)
	if r.gcs.Failures > 3 && v.Cluster.Head.Ready {
		all = append(all, addon.Event{Warning: true, Reason: addon.ReasonGCSUnavailable,
			Message: "no scaling while Ray's GCS cannot be read: " + HeadSummary(r.gcs.LastErr, v.Cluster.Head)})
	}
	all = append(all, going(v.Members)...)
	if v.Mode == nodepool.Managed {
		all = slices.Concat(all, r.memory.reductionEvents(o), unmetEvents(o.Intent.Plan), r.memory.launchEvents(o))
	}
	for _, e := range all {
		c.emitOnce(ctx, r, v, e)
	}
}

// modeEvents reports why a cluster is not managed, unless somebody chose that or never set a mode. A mode that depends
// on an object which has not been read is unknown for a moment; status and a finding say if that lasts.
func modeEvents(v observe.View) []addon.Event {
	quiet := []string{addon.AsAsked, addon.NotAsked, addon.ReadOnly, addon.NamespaceUnknown, addon.QueueUnknown}
	if v.Mode != nodepool.Shadow || slices.Contains(quiet, v.Why.Code) {
		return nil
	}
	return []addon.Event{{Warning: v.Why.Code == addon.SidecarAlive, Reason: v.Why.Code, Message: v.Why.Message}}
}

// maxGoing bounds the workers of one RayCluster that get an Event each when their machines go.
const maxGoing = 20

// going reports the workers whose machine goes or whose GPU is bad. A pod that is merely deleted is no news.
func going(members []observe.Member) (all []addon.Event) {
	for _, m := range members {
		bad := m.Going != nil && m.Going.Sign == departure.BadGPU
		if (bad || m.Goes() && m.Going.Sign != departure.PodTerminating) && len(all) < maxGoing {
			e := addon.Event{Reason: addon.ReasonWorkerGoing,
				Message: m.Pod + ": " + m.Going.Text(m.Worker.Node)}
			if bad {
				e.Reason, e.Warning, e.Owner = addon.ReasonBadGPU, true, true
			}
			all = append(all, e)
		}
	}
	return all
}

// reductionEvents reports why nothing is taken away.
func (m *memory) reductionEvents(o *addon.Cycle) (all []addon.Event) {
	if m.guard.Doubts() && o.Paused != "" {
		all = append(all, addon.Event{Warning: true, Reason: addon.ReasonReductionsPaused, Message: o.Paused})
	}
	if m.freshErr != nil {
		all = append(all, addon.Event{Warning: true, Reason: addon.ReasonReductionsPaused, Message: fmt.Sprintf(
			"reading the RayCluster again before a reduction failed: %v", m.freshErr)})
	}
	if reverted := m.Patches.reverts.Text(o.View.Now); reverted != "" {
		all = append(all, addon.Event{Warning: true, Reason: addon.ReasonReplicasReverted, Message: reverted})
	}
	return all
}

// launchEvents reports what holds launches back: the in-flight caps, and groups that fail.
func (m *memory) launchEvents(o *addon.Cycle) (all []addon.Event) {
	for _, group := range slices.Sorted(maps.Keys(o.Intent.Held)) {
		all = append(all, addon.Event{Reason: addon.ReasonInFlightCap, Message: fmt.Sprintf(
			"group %s: %d pods are waiting for earlier ones to join (maxInFlight)", group, o.Intent.Held[group])})
	}
	for _, g := range o.View.Cluster.Groups {
		if m.breakers.Open(g.Name, o.View.Now) {
			b := m.breakers[g.Name]
			all = append(all, addon.Event{Warning: true, Reason: addon.ReasonGroupFailing, Message: fmt.Sprintf(
				"group %s: %s; no launches until %s", g.Name, b.Reason, clock(b.OpenUntil))})
		}
	}
	return all
}

// maxUnmet bounds the unmet demands that get an Event and a log line each: there may be as many as there are shapes.
const maxUnmet = 20

// unmetEvents reports the first unmet demands, and how many more there are. If there is too much demand for one plan,
// each plan has others, so one Event stands for all.
func unmetEvents(plan planner.Plan) []addon.Event {
	if plan.Deferred != nil {
		return []addon.Event{{Reason: addon.ReasonCapped, Message: "there is too much different demand for one plan; " +
			"the next plans continue with the rest, and idle workers that it could use stay; `autoscaler explain` " +
			"lists the reasons"}}
	}
	var all []addon.Event
	further := map[string]int{} // by reason, those beyond maxUnmet
	add := func(what string, why planner.Reason) {
		e := addon.Event{Reason: addon.ReasonCapped}
		switch why.Code {
		case planner.Impossible:
			e.Reason, e.Warning = addon.ReasonImpossible, true
		case planner.Trying:
			e.Reason = addon.ReasonTrying
		case planner.CoolingDown:
			// The message counts seconds down and would change every minute; GroupFailing reports the group.
			why.Message = "a group that could serve it failed recently and gets no launches for a while"
		}
		if len(all) >= maxUnmet {
			further[e.Reason]++
			return
		}
		e.Message = what + ": " + why.Message
		all = append(all, e)
	}
	for _, r := range plan.InfeasibleRequests {
		add(planner.Describe(raydemand.Request{Bundle: r.Bundle, Slice: r.Slice}), r.Reason)
	}
	for _, gang := range plan.InfeasibleGangRequests {
		add("gang "+gang.ID, gang.Reason)
	}
	for _, r := range plan.InfeasibleRequestResources {
		what := "request_resources "
		if r.OverREST {
			what = "requests over REST "
		}
		what += planner.Describe(raydemand.Request{Bundle: r.Bundle, Slice: r.Slice})
		if r.AskedBy != "" {
			what += " (" + r.AskedBy + ")"
		}
		add(what, r.Reason)
	}
	for _, reason := range slices.Sorted(maps.Keys(further)) {
		all = append(all, addon.Event{Warning: reason == addon.ReasonImpossible, Reason: reason,
			Message: fmt.Sprintf("further demands: %d more; `autoscaler explain` lists the reasons", further[reason])})
	}
	return all
}

// repeatAfter is the pause before a condition whose message changed is emitted again.
const repeatAfter = time.Minute

// conditions has the lasting conditions that were emitted as Events, by reason and by the subject of the message, so
// that two groups do not hide each other. Each is emitted once, when it begins, and not in every cycle.
type conditions map[string]*emittedCondition

type emittedCondition struct {
	message string
	at      time.Time
	holds   bool // in this cycle
}

// Start starts a cycle.
func (c conditions) Start() {
	for _, known := range c {
		known.holds = false
	}
}

// Begins notes that a condition holds now and reports whether to emit its Event.
func (c conditions) Begins(now time.Time, e addon.Event) bool {
	subject, _, _ := strings.Cut(e.Message, ":")
	key := e.Reason + "/" + subject
	if known := c[key]; known != nil && (known.message == e.Message || now.Sub(known.at) < repeatAfter) {
		known.holds = true
		return false
	}
	c[key] = &emittedCondition{message: e.Message, at: now, holds: true}
	return true
}

// End forgets the conditions that did not hold in this cycle, so that they are emitted when they come back.
func (c conditions) End() {
	maps.DeleteFunc(c, func(_ string, known *emittedCondition) bool { return !known.holds })
}
