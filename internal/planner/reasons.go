package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Codes of the reasons in a group's row. They are stable; the sentences beside them are for people.
const (
	CodeLaunch        = "launch"         // pods are launched, and for what
	CodeNotNeeded     = "not_needed"     // nothing that waits needs another pod of this group
	CodeAtMax         = "at_max"         // demand waits, the group is at its maximum
	CodeMaxWorkers    = "max_workers"    // demand waits, all groups together are at their bound
	CodeConservative  = "conservative"   // demand waits, upscalingMode Conservative has enough on the way
	CodeInFlight      = "in_flight"      // demand waits, and follows when pods that are on their way have joined: no more may be at once
	CodeClosed        = "closed"         // the group takes no launches until somebody mends it
	CodeCoolingDown   = "cooling_down"   // the group takes no launches for a while because its last ones failed
	CodeTooSmall      = "too_small"      // its pods have too little for what waits
	CodeLabels        = "labels"         // its labels do not match what waits
	CodeNotChosen     = "not_chosen"     // it could have served, another group was taken
	CodeInvalidLimits = "invalid_limits" // minReplicas above maxReplicas
	CodeOnTheWay      = "on_the_way"     // pods asked for have not joined Ray yet
	CodeNotInFull     = "not_in_full"    // a gang or a call of request_resources cannot be had in full, so nothing is launched for it
	CodeStop          = "stop"           // pods are stopped, and why
	CodeIdle          = "idle"           // workers are idle and stay for now, and why
	CodeHeldOver      = "held_over"      // idle workers serve a request and stay until those that the plan counts on in their stead have joined Ray
)

// Codes of the reasons why a group's GPUs are not for some demand.
const (
	CodeSliceTooSmall = "slice_too_small" // they have too little memory or compute for what waits
	CodeSliceUnknown  = "slice_unknown"   // what waits asks of them what is not known of them
	CodeIsolation     = "isolation"       // they are not kept apart from others as what waits needs it
)

// CodePoolCeiling says that demand waits, and the pools of nodes that the group can land on have no room for more of its pods, grown as far as they may.
const CodePoolCeiling = "pool_ceiling"

// Codes of the findings in a plan.
const (
	// FindingOverstated: a node tells of more free than it has in total.
	FindingOverstated = "available-over-total"
	// FindingUnreported: a node that has joined says nothing of what it has; it counts as what its group brings.
	FindingUnreported = "resources-unreported"
	// FindingGroupRemoved: a pod of a group that the RayCluster does not list any more.
	FindingGroupRemoved = "group-removed"
	// FindingMinAboveMax: a group's minReplicas is above its maxReplicas. The reader of RayClusters tells of it by the same
	// code and closes the group.
	FindingMinAboveMax = "min-above-max"
)

// reasons explains one group's row: first what it launches or why it does not, then what is on its way, what goes,
// and what idles.
func (w *words) reasons(i int, given []int64, out *outcome) []Reason {
	reasons := []Reason{w.launchReason(i, given, out)}
	g := &w.groups[i]
	if short, ok := w.minimumReason(i, given); ok && given[i] > 0 && w.heldOf(i) == 0 {
		reasons = append(reasons, short)
	}
	if n := g.live - g.joined + g.missing; n > 0 {
		reasons = append(reasons, Reason{CodeOnTheWay, fmt.Sprintf("%s asked for earlier %s not joined Ray yet%s", podCount(n), has(n), w.oldest(i)) + w.nodesComing(i)})
	}
	if stop, ok := w.stopReason(i); ok {
		reasons = append(reasons, stop)
	}
	if idle, ok := w.idleReason(i, out); ok {
		reasons = append(reasons, idle)
	}
	if held, ok := w.heldOverReason(i, out); ok {
		reasons = append(reasons, held)
	}
	return reasons
}

// nodesComing says for how many pods of a group a node is on its way.
func (w *words) nodesComing(i int) string {
	if n := w.groups[i].NodesComing; n > 0 {
		return fmt.Sprintf("; Karpenter has launched nodes for %d of them", n)
	}
	return ""
}

// oldest says how long the oldest pod of a group is on its way, where that is known.
func (w *words) oldest(i int) string {
	var since time.Time
	for at := range w.nodes {
		if n := &w.nodes[at]; n.group == i && n.stop == "" && n.State == Pending {
			since = earliest(since, n.Since)
		}
	}
	if since.IsZero() || !since.Before(w.takenAt) {
		return ""
	}
	return ", the oldest for " + Span(w.takenAt.Sub(since).Seconds())
}

func (w *words) launchReason(i int, given []int64, out *outcome) Reason {
	g := &w.groups[i]
	if given[i] > 0 {
		return Reason{CodeLaunch, fmt.Sprintf("launching %s %s%s", podCount(given[i]), w.purposes(i, given[i], out), w.following(i))}
	}
	if g.shut.Code != "" {
		return g.shut
	}
	if short, ok := w.minimumReason(i, given); ok {
		return short
	}
	if !w.wanted(i, out) {
		if reason, ok := w.passedOver(i, given, out); ok {
			return reason
		}
		return notNeeded(g)
	}
	if limit, ok := w.limit(i, given); ok {
		return limit
	}
	return Reason{CodeNotInFull, sentences("what waits "+notInFull, w.shortOf(i, given, out))}
}

// shortOf says which limit of a group is too low for a gang or a call of request_resources that is not had in full, if one is.
func (w *words) shortOf(i int, given []int64, out *outcome) string {
	reason, room := w.tightest(i, given)
	short := func(items []*item) bool { return suitsAny(items, w.groups[i].shape) && room < bundlesOf(items) }
	for _, g := range out.gangs {
		if w.groups[i].carries(g.TopologyLabel) && slices.ContainsFunc(g.options, func(o option) bool { return short(o.items) }) {
			return reason.Message
		}
	}
	if slices.ContainsFunc(out.claims, func(c int) bool { return short(w.claims[c].items) }) {
		return reason.Message
	}
	return ""
}

// notInFull is said of a gang, or of a call of request_resources, that a group could serve in part.
const notInFull = "cannot be had in full, so nothing is launched for it"

// belowMinimum counts the pods that a group has less than its minimum, those that the plan launches counted.
func (w *words) belowMinimum(i int, given []int64) int64 {
	g := &w.groups[i]
	if g.contradictory() {
		return 0
	}
	return max(0, g.min-g.standing()-given[i])
}

// minimumReason says which limit keeps a group below its minimum.
func (w *words) minimumReason(i int, given []int64) (Reason, bool) {
	short := w.belowMinimum(i, given)
	if short == 0 {
		return Reason{}, false
	}
	g := &w.groups[i]
	text := fmt.Sprintf("%s short of its minimum of %d", podCount(short), g.min)
	if limit, ok := w.limit(i, given); ok {
		return Reason{limit.Code, text + ": " + limit.Message}, true
	}
	return Reason{CodeStop, text + " until those that leave are gone"}, true
}

// notNeeded says why a group that nothing waits for has the pods that it has.
func notNeeded(g *group) Reason {
	if g.min > 0 && g.current <= g.min {
		return Reason{CodeNotNeeded, fmt.Sprintf("kept at its minimum of %d; nothing that waits needs more", g.min)}
	}
	return Reason{CodeNotNeeded, "nothing that waits needs another pod of this group"}
}

// limit names the limit that keeps a group from launching one more replica.
func (w *words) limit(i int, given []int64) (Reason, bool) {
	g := &w.groups[i]
	pods := g.current + given[i]
	switch {
	case g.shut.Code != "":
		return g.shut, true
	case pods+g.hosts > g.max:
		return Reason{CodeAtMax, fmt.Sprintf("group %s is at its maximum of %d (%s)", g.Name, g.max, w.having(i, given[i]))}, true
	case w.spare(given) < g.hosts:
		return w.workersLimit(g, given), true
	}
	if reason, ok := w.poolLimit(i, given); ok {
		return reason, true
	}
	return w.inFlightLimit(i, given)
}

// workersLimit tells of the bound of all groups: reached, or with room for a part of a replica.
func (w *words) workersLimit(g *group, given []int64) Reason {
	if n := w.spare(given); n > 0 {
		return Reason{CodeMaxWorkers, fmt.Sprintf("all groups together may have %d (%s), and a replica of group %s is %s", w.bound, w.havingAll(given), g.Name, podCount(g.hosts))}
	}
	return Reason{CodeMaxWorkers, fmt.Sprintf("all groups together are at their maximum of %d", w.bound)}
}

func (w *words) having(i int, given int64) string {
	text := fmt.Sprintf("has %d", w.groups[i].current)
	if given > 0 {
		text += fmt.Sprintf(", launching %d", given)
	}
	return text
}

// wanted reports whether some demand that is not served could use this group.
func (w *words) wanted(i int, out *outcome) bool {
	s := w.groups[i].shape
	for at, n := range out.unserved {
		if n > 0 && w.requests[at].suits(s) {
			return true
		}
	}
	for _, g := range out.gangs {
		if g.suits(s) {
			return true
		}
	}
	return slices.ContainsFunc(out.claims, func(i int) bool { return suitsAny(w.claims[i].items, s) })
}

// suits reports whether a fresh node of this shape could serve one bundle.
func (it *item) suits(s *shape) bool {
	return it.rank[s.labels] != noMatch && s.total.times(it.need, 1) == 1
}

func suitsAny(items []*item, s *shape) bool {
	for _, it := range items {
		if it.suits(s) {
			return true
		}
	}
	return false
}

func (w *words) stopReason(i int) (Reason, bool) {
	var stopped int64
	var first string
	for at := range w.nodes {
		if n := &w.nodes[at]; n.group == i && n.stop != "" {
			if stopped == 0 {
				first = n.Pod + " because " + n.stopMessage
			}
			stopped++
		}
	}
	if stopped == 0 {
		return Reason{}, false
	}
	return Reason{CodeStop, fmt.Sprintf("stopping %s: %s", podCount(stopped), first)}, true
}

// idleReason tells of the idle worker that stays and is nearest to leaving.
func (w *words) idleReason(i int, out *outcome) (Reason, bool) {
	g := &w.groups[i]
	count, longest, at := 0, math.Inf(-1), -1
	for k := range w.nodes {
		n := &w.nodes[k]
		if n.group != i || n.stop != "" || n.State != Idle {
			continue
		}
		count++
		if n.IdleSeconds > longest {
			longest, at = n.IdleSeconds, k
		}
	}
	if at < 0 {
		return Reason{}, false
	}
	return Reason{CodeIdle, fmt.Sprintf("%d of %d idle, longest %s%s", count, g.live-g.stopping, Span(longest), w.staysIdle(at, out))}, true
}

// heldOverReason counts the group's workers that stay until what replaces them has joined.
func (w *words) heldOverReason(i int, out *outcome) (Reason, bool) {
	var held int64
	for n := range out.heldOver {
		if out.heldOver[n] && w.nodes[n].group == i {
			held++
		}
	}
	if held == 0 {
		return Reason{}, false
	}
	return Reason{CodeHeldOver, fmt.Sprintf("%s %s requests over REST until workers that the plan counts on have joined Ray", podCount(held), verb(held, "serves", "serve"))}, true
}

// staysIdle says why an idle worker is not stopped.
func (w *words) staysIdle(at int, out *outcome) string {
	n := &w.nodes[at]
	g := &w.groups[n.group]
	switch {
	case g.timeout == nil:
		return "; no idle timeout is set"
	case n.IdleSeconds <= *g.timeout:
		return " of " + Span(*g.timeout)
	case g.standing() <= g.min:
		return fmt.Sprintf("; kept for the minimum of %d", g.min)
	case out.isHeldOver(at):
		return "; kept until what replaces it has joined Ray"
	case out.used[at]:
		return "; kept for demand that counts on it"
	case g.hosts > 1:
		return "; kept until all hosts of the replica are idle and the minimum allows it"
	}
	return "; kept"
}

// Describe writes a request as a person would: {CPU 1, memory 2 GiB} where zone=a, else zone=b, and a wish as
// {GPU 1} of 10 GiB, hardware. Amounts of zero are left out.
func Describe(r raydemand.Request) string {
	var s strings.Builder
	s.WriteByte('{')
	for _, name := range r.Bundle.Names() {
		if r.Bundle[name] == 0 {
			continue
		}
		if s.Len() > 1 {
			s.WriteString(", ")
		}
		s.WriteString(name + " " + quantity(name, r.Bundle[name]))
	}
	s.WriteByte('}')
	if r.Slice != nil {
		s.WriteString(" of " + r.Slice.String())
	}
	for i, selector := range r.Selectors {
		switch {
		case len(selector) == 0:
			continue
		case i == 0:
			s.WriteString(" where ")
		default:
			s.WriteString(", else ")
		}
		s.WriteString(selector.String())
	}
	return s.String()
}

func podCount(n int64) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}

func has(n int64) string {
	if n == 1 {
		return "has"
	}
	return "have"
}
