package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// lasting is what a cycle knows about conditions that may last.
type lasting struct {
	View observe.View
	// HeadFails is why a head that is ready has not answered several times; empty if it answers.
	HeadFails string
	// Doubt is why too few nodes or pods are seen for reductions; empty if there is no doubt.
	Doubt string
	// FreshErr is the error of reading the RayCluster again before a reduction; nil if the last reading succeeded.
	FreshErr error
	// Reverted describes how another field manager keeps setting replicas back; empty if none does.
	Reverted string
	Drains   scaledown.Drains
	Plan     planner.Plan
	// Held counts per group the pods that the in-flight caps hold back.
	Held     map[string]int
	Breakers observe.Breakers
}

// Events returns the conditions that hold now and were not reported before, in a fixed order.
func (l lasting) Events(known *conditions) []addon.Event {
	if l.View.Mode == nodepool.Off {
		return nil
	}
	all := l.mode(known)
	if l.HeadFails != "" {
		all = append(all, addon.Event{Warning: true, Reason: addon.ReasonGCSUnavailable,
			Message: "no scaling while Ray's GCS cannot be read: " + l.HeadFails})
	}
	all = append(all, going(l.View.Members)...)
	if l.View.Mode == nodepool.Managed {
		all = slices.Concat(all, l.reductions(), unmetEvents(l.Plan), l.launches())
	}
	return slices.DeleteFunc(all, func(e addon.Event) bool { return !known.Begins(l.View.Now, e) })
}

// modeUnknownGrace is how long the mode may be unknown before an Event reports it: that of a new namespace or owner is
// unknown for a moment.
const modeUnknownGrace = 5 * time.Second

// mode reports why a cluster is not managed, unless somebody chose that or never set a mode.
func (l lasting) mode(known *conditions) []addon.Event {
	code := l.View.Why.Code
	// an object which the mode depends on has not been read
	unknown := code == addon.NamespaceUnknown || code == addon.QueueUnknown
	switch {
	case l.View.Mode != nodepool.Shadow || code == addon.AsAsked || code == addon.NotAsked || code == addon.ReadOnly:
		return nil
	case unknown && !known.Lasted(l.View.Now, code, modeUnknownGrace):
		return nil
	}
	return []addon.Event{{Warning: code == addon.SidecarAlive || unknown, Reason: code, Message: l.View.Why.Message}}
}

// maxGoing bounds the workers of one RayCluster that get an Event each when their machines go.
const maxGoing = 20

// going reports the workers whose machine goes or whose GPU is bad. A pod that is merely deleted is no news.
func going(members []observe.Member) (all []addon.Event) {
	for _, m := range members {
		bad := m.Going != nil && m.Going.Sign == departure.BadGPU
		if (bad || m.Goes() && m.Going.Sign != departure.PodTerminating) && len(all) < maxGoing {
			e := addon.Event{Reason: addon.ReasonWorkerGoing, Until: m.Going.Deadline,
				Message: m.Pod + ": " + m.Going.Text(m.Worker.Node)}
			if bad {
				e.Reason, e.Warning, e.Owner = addon.ReasonBadGPU, true, true
			}
			all = append(all, e)
		}
	}
	return all
}

// reductions reports why nothing is taken away, and drains that continue past their deadline.
func (l lasting) reductions() (all []addon.Event) {
	if l.Doubt != "" {
		all = append(all, addon.Event{Warning: true, Reason: addon.ReasonReductionsPaused, Message: l.Doubt})
	}
	for _, entry := range l.Drains.Resumed() {
		all = append(all, addon.Event{Reason: addon.ReasonDraining, Message: fmt.Sprintf(
			"%s: its node is already draining, and its group is above its maximum; the deadline is %s",
			entry.Pod, clock(entry.Deadline))})
	}
	if l.FreshErr != nil {
		all = append(all, addon.Event{Warning: true, Reason: addon.ReasonReductionsPaused, Message: fmt.Sprintf(
			"reading the RayCluster again before a reduction failed: %v", l.FreshErr)})
	}
	if l.Reverted != "" {
		all = append(all, addon.Event{Warning: true, Reason: addon.ReasonReplicasReverted, Message: l.Reverted})
	}
	return all
}

// launches reports what holds launches back: the in-flight caps, and groups that fail.
func (l lasting) launches() (all []addon.Event) {
	for _, group := range slices.Sorted(maps.Keys(l.Held)) {
		all = append(all, addon.Event{Reason: addon.ReasonInFlightCap, Message: fmt.Sprintf(
			"group %s: %d pods are waiting for earlier ones to join (maxInFlight)", group, l.Held[group])})
	}
	for _, g := range l.View.Cluster.Groups {
		if l.Breakers.Open(g.Name, l.View.Now) {
			b := l.Breakers[g.Name]
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
	u := unmet{further: map[string]int{}}
	for _, r := range plan.InfeasibleRequests {
		u.add(planner.Describe(raydemand.Request{Bundle: r.Bundle, Slice: r.Slice}), r.Reason)
	}
	for _, gang := range plan.InfeasibleGangRequests {
		u.add("gang "+gang.ID, gang.Reason)
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
		u.add(what, r.Reason)
	}
	for _, reason := range slices.Sorted(maps.Keys(u.further)) {
		u.events = append(u.events, addon.Event{Warning: reason == addon.ReasonImpossible, Reason: reason,
			Message: fmt.Sprintf("further demands: %d more; `autoscaler explain` lists the reasons",
				u.further[reason])})
	}
	return u.events
}

// unmet collects the Events of unmet demands; further counts by reason those beyond maxUnmet.
type unmet struct {
	events  []addon.Event
	further map[string]int
}

func (u *unmet) add(what string, why planner.Reason) {
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
	if len(u.events) >= maxUnmet {
		u.further[e.Reason]++
		return
	}
	e.Message = what + ": " + why.Message
	u.events = append(u.events, e)
}

// repeatAfter is the pause before a condition whose message changed is emitted again.
const repeatAfter = time.Minute

// sooner is by how much a deadline must be sooner than the one that was emitted to be news.
const sooner = 10 * time.Second

// conditions emits a lasting condition as an Event once, when it begins, and not in every cycle.
type conditions struct {
	emitted map[string]emittedCondition
	raised  map[string]bool
	// since is when a condition began that must last before it is emitted; held are those found in this cycle.
	since map[string]time.Time
	held  map[string]bool
}

type emittedCondition struct {
	message string
	at      time.Time
	// until is the deadline that the message names; zero if it names none.
	until time.Time
}

// Start starts a cycle.
func (c *conditions) Start() { c.raised, c.held = map[string]bool{}, map[string]bool{} }

// Begins notes that a condition holds now and reports whether to emit its Event. A deadline that appears, or that is
// sooner by sooner or more, is emitted without a pause.
func (c *conditions) Begins(now time.Time, e addon.Event) bool {
	return c.begins(now, conditionKey(e), e)
}

func (c *conditions) begins(now time.Time, key string, e addon.Event) bool {
	c.raised[key] = true
	known, held := c.emitted[key]
	urgent := !e.Until.IsZero() && (known.until.IsZero() || known.until.Sub(e.Until) >= sooner)
	if held && !urgent && (known.message == e.Message || now.Sub(known.at) < repeatAfter) {
		return false
	}
	if c.emitted == nil {
		c.emitted = map[string]emittedCondition{}
	}
	c.emitted[key] = emittedCondition{message: e.Message, at: now, until: e.Until}
	return true
}

// Lasted notes that the condition holds now and reports whether it has held for that long in every cycle.
func (c *conditions) Lasted(now time.Time, key string, least time.Duration) bool {
	c.held[key] = true
	begun, known := c.since[key]
	if !known {
		if c.since == nil {
			c.since = map[string]time.Time{}
		}
		begun, c.since[key] = now, now
	}
	return now.Sub(begun) >= least
}

// End forgets the conditions that did not hold in this cycle, so that they are emitted when they come back.
func (c *conditions) End() {
	for key := range c.emitted {
		if !c.raised[key] {
			delete(c.emitted, key)
		}
	}
	for key := range c.since {
		if !c.held[key] {
			delete(c.since, key)
		}
	}
}

// conditionKey identifies a lasting condition: the reason with the subject of the message, so that two groups do not
// hide each other.
func conditionKey(e addon.Event) string {
	subject, _, _ := strings.Cut(e.Message, ":")
	return e.Reason + "/" + subject
}
