package reasons

import (
	"fmt"
	"math"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// Reasons explains one group's row: what it launches or why it does not, then the pods on their way, those that stop,
// those that are idle, and those that would be idle but for something that no work uses.
func (w *Writer) Reasons(i int, given []int64, out *search.Outcome) []model.Reason {
	reasons := []model.Reason{w.launchReason(i, given, out)}
	g := &w.Groups[i]
	if short, ok := w.minimumReason(i, given); ok && given[i] > 0 && w.HeldOf(i) == 0 {
		reasons = append(reasons, short)
	}
	if n := g.Live - g.Joined + g.Missing; n > 0 {
		reasons = append(reasons, model.Reason{
			Code: model.CodeOnTheWay,
			Message: fmt.Sprintf("%s requested earlier %s not joined Ray yet%s%s",
				phrase.Pods(n), phrase.HasOrHave(n), w.oldest(i), w.nodesComing(i)),
		})
	}
	tried := reasons[0].Code == model.CodeTrying || reasons[0].Code == model.CodePoolCeiling
	if g.Trying() && !tried && g.Blocked.Code == "" {
		reasons = append(reasons, g.TryingReason())
	}
	if w.Tries(i, given) > 0 && !tried {
		reasons = append(reasons, w.TriedInPool(i))
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
	reasons = append(reasons, w.warmReasons(i, given, out)...)
	return append(reasons, w.heldIdle(i)...)
}

// nodesComing counts the pods of a group for which a node is on its way.
func (w *Writer) nodesComing(i int) string {
	if n := w.Groups[i].NodesComing; n > 0 {
		return fmt.Sprintf("; Karpenter has launched nodes for %d of them", n)
	}
	return ""
}

// oldest returns how long the oldest pod of a group has been on its way, if known.
func (w *Writer) oldest(i int) string {
	var since time.Time
	for at := range w.Nodes {
		if n := &w.Nodes[at]; n.GroupIndex == i && n.Stop == "" && n.State == model.Pending {
			since = model.Earliest(since, n.Since)
		}
	}
	if since.IsZero() || !since.Before(w.TakenAt) {
		return ""
	}
	return ", the oldest for " + phrase.Span(w.TakenAt.Sub(since).Seconds())
}

func (w *Writer) launchReason(i int, given []int64, out *search.Outcome) model.Reason {
	g := &w.Groups[i]
	if trial, ok := w.trialReason(i); ok {
		return trial
	}
	if given[i] > 0 {
		return model.Reason{
			Code: model.CodeLaunch,
			Message: fmt.Sprintf(
				"launching %s %s%s",
				phrase.Pods(given[i]),
				w.purposes(i, given[i], out),
				w.Following(i),
			),
		}
	}
	if g.Blocked.Code != "" {
		return g.Blocked
	}
	if short, ok := w.minimumReason(i, given); ok {
		return short
	}
	if !w.wanted(i, out) {
		if reason, ok := w.passedOver(i, given, out); ok {
			return reason
		}
		if vector.SuitsAny(w.DeferredItems(), g.Shape) {
			return model.Reason{
				Code:    model.CodeTooMany,
				Message: "waiting demand that it could serve is too much for one plan; the next plans continue with it",
			}
		}
		return notNeeded(g)
	}
	if limit, ok := w.Limit(i, given); ok {
		return limit
	}
	return model.Reason{
		Code:    model.CodeNotInFull,
		Message: phrase.Join("waiting demand "+NotInFull, w.shortOf(i, given, out)),
	}
}

// shortOf names the limit of a group that is too low for a gang or a call of request_resources that is not served in
// full, if any.
func (w *Writer) shortOf(i int, given []int64, out *search.Outcome) string {
	reason, room := w.Tightest(i, given)
	short := func(items []*vector.Item) bool {
		return vector.SuitsAny(items, w.Groups[i].Shape) && room < vector.BundlesOf(items)
	}
	for _, g := range out.Gangs {
		for _, it := range g.Items() {
			if reason, ok := w.awaitedReason(i, it, g, given); ok {
				return reason.Message
			}
		}
		if w.Groups[i].Carries(g.TopologyLabel) &&
			slices.ContainsFunc(g.Options, func(o fleet.Option) bool { return short(o.Items) }) {
			return reason.Message
		}
	}
	if slices.ContainsFunc(out.Claims, func(c int) bool { return short(w.UnservedOf(c, out)) }) {
		return reason.Message
	}
	return ""
}

// NotInFull describes a gang, or a call of request_resources, of which a group could serve a part.
const NotInFull = "cannot be served in full, so nothing is launched for it"

// BelowMinimum counts the pods that a group lacks to reach its minimum after the plan's launches.
func (w *Writer) BelowMinimum(i int, given []int64) int64 {
	g := &w.Groups[i]
	if g.LimitsConflict() {
		return 0
	}
	return max(0, g.MinPods-g.Remaining()-given[i])
}

// minimumReason names the limit that keeps a group below its minimum.
func (w *Writer) minimumReason(i int, given []int64) (model.Reason, bool) {
	short := w.BelowMinimum(i, given)
	if short == 0 {
		return model.Reason{}, false
	}
	g := &w.Groups[i]
	text := fmt.Sprintf("%s below its minimum of %d", phrase.Pods(short), g.MinPods)
	if limit, ok := w.Limit(i, given); ok {
		return model.Reason{Code: limit.Code, Message: text + ": " + limit.Message}, true
	}
	return model.Reason{Code: model.CodeStop, Message: text + " until stopping pods are gone"}, true
}

// notNeeded explains the size of a group that no waiting demand needs.
func notNeeded(g *fleet.Group) model.Reason {
	if g.MinPods > 0 && g.Current <= g.MinPods {
		return model.Reason{
			Code:    model.CodeNotNeeded,
			Message: fmt.Sprintf("kept at its minimum of %d; no waiting demand needs more", g.MinPods),
		}
	}
	return model.Reason{Code: model.CodeNotNeeded, Message: "no waiting demand needs another pod of this group"}
}

// wanted reports whether the group could serve some of the unserved demand.
func (w *Writer) wanted(i int, out *search.Outcome) bool {
	s := w.Groups[i].Shape
	for at, n := range out.Unserved {
		if n > 0 && !w.Requests[at].Deferred && w.Requests[at].Suits(s) {
			return true
		}
	}
	for _, g := range out.Gangs {
		if !g.Deferred && g.Suits(s) {
			return true
		}
	}
	return slices.ContainsFunc(out.Claims, func(i int) bool { return vector.SuitsAny(w.UnservedOf(i, out), s) })
}

func (w *Writer) stopReason(i int) (model.Reason, bool) {
	var stopped int64
	var first string
	for at := range w.Nodes {
		if n := &w.Nodes[at]; n.GroupIndex == i && n.Stop != "" {
			if stopped == 0 {
				first = fmt.Sprintf("%s (%s)", n.Pod, n.StopMessage)
			}
			stopped++
		}
	}
	if stopped == 0 {
		return model.Reason{}, false
	}
	return model.Reason{
		Code:    model.CodeStop,
		Message: fmt.Sprintf("stopping %s: %s", phrase.Pods(stopped), first),
	}, true
}

// idleReason describes the idle worker that stays and is closest to being stopped.
func (w *Writer) idleReason(i int, out *search.Outcome) (model.Reason, bool) {
	g := &w.Groups[i]
	count, longest, at := 0, math.Inf(-1), -1
	for k := range w.Nodes {
		n := &w.Nodes[k]
		if n.GroupIndex != i || n.Stop != "" || n.State != model.Idle {
			continue
		}
		count++
		if n.IdleSeconds > longest {
			longest, at = n.IdleSeconds, k
		}
	}
	if at < 0 {
		return model.Reason{}, false
	}
	return model.Reason{
		Code: model.CodeIdle,
		Message: fmt.Sprintf(
			"%d of %d idle, longest %s%s",
			count,
			g.Live-g.Stopping,
			phrase.Span(longest),
			w.StaysIdle(at, out),
		),
	}, true
}

// heldOverReason counts the group's workers that stay until their replacements have joined.
func (w *Writer) heldOverReason(i int, out *search.Outcome) (model.Reason, bool) {
	var held int64
	for n := range out.HeldOver {
		if out.HeldOver[n] && w.Nodes[n].GroupIndex == i {
			held++
		}
	}
	if held == 0 {
		return model.Reason{}, false
	}
	return model.Reason{
		Code: model.CodeHeldOver,
		Message: fmt.Sprintf(
			"%s %s REST requests until their replacements have joined Ray",
			phrase.Pods(held),
			phrase.OneOrMany(held, "serves", "serve"),
		),
	}, true
}

// StaysIdle explains why an idle worker is not stopped.
func (w *Writer) StaysIdle(at int, out *search.Outcome) string {
	n := &w.Nodes[at]
	g := &w.Groups[n.GroupIndex]
	switch {
	case g.Timeout == nil:
		return "; no idle timeout is set"
	case n.IdleSeconds <= *g.Timeout:
		return " of " + phrase.Span(*g.Timeout)
	case g.Remaining() <= g.MinPods:
		return fmt.Sprintf("; kept for the minimum of %d", g.MinPods)
	case out.IsHeldOver(at):
		return "; kept until its replacement has joined Ray"
	case out.IsSpared(at):
		return "; kept because too much demand waits for one plan, and what is planned later could need it"
	case w.WarmFor(out, at) != nil:
		return "; kept warm for " + w.WarmFor(out, at).Name
	case out.Used[at]:
		return "; kept for demand that is placed on it"
	case g.Hosts > 1:
		return "; kept until all hosts of the replica are idle and the minimum allows it"
	}
	return "; kept"
}
