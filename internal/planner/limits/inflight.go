package limits

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// inFlightLimit names the in-flight cap that prevents one more replica of a group, if the plan holds launches back.
func (w *Writer) inFlightLimit(i int, given []int64) (model.Reason, bool) {
	if w.Held == nil {
		return model.Reason{}, false
	}
	if reason, ok := w.InFlightCap(i, given); ok {
		return reason, true
	}
	if g := &w.Groups[i]; w.Held[i] > 0 {
		return model.Reason{
			Code: model.CodeInFlight,
			Message: fmt.Sprintf(
				"group %s has %s on the way; earlier demand is waiting for %s",
				g.Name,
				phrase.Pods(g.Pending()+given[i]),
				w.capNames(g),
			),
		}, true
	}
	return model.Reason{}, false
}

// InFlightCap names the in-flight cap that has no room for one more replica of a group.
func (w *Writer) InFlightCap(i int, given []int64) (model.Reason, bool) {
	g := &w.Groups[i]
	var all int64
	for k := range w.Groups {
		all += w.Groups[k].Pending() + given[k]
	}
	own, most := g.Pending()+given[i], w.Policy.MaxInFlight
	switch {
	case g.Trying() && own+g.Hosts > g.InFlight:
		return g.TryingReason(), true
	case own+g.Hosts > g.InFlight:
		return groupsCap(g, own, given[i]), true
	case all+g.Hosts > placing.OrUnbounded(most):
		return model.Reason{
			Code: model.CodeInFlight,
			Message: fmt.Sprintf(
				"maxInFlight allows all groups together %s on the way at once%s",
				phrase.Pods(int64(most)),
				onTheWayNow("have", all, vector.Sum(given), int64(most)),
			),
		}, true
	}
	return model.Reason{}, false
}

// groupsCap describes the in-flight cap of one group, which has its own pods on the way.
func groupsCap(g *fleet.Group, own, given int64) model.Reason {
	return model.Reason{
		Code: model.CodeConservative,
		Message: fmt.Sprintf("%s allows group %s %s on the way at once%s",
			search.ConservativeMode, g.Name, phrase.Pods(g.InFlight), onTheWayNow("has", own, given, g.InFlight)),
	}
}

// onTheWayNow returns how many pods are on the way, or why a plan launches more than a cap allows.
func onTheWayNow(have string, now, given, most int64) string {
	if now > most && given > 0 {
		return fmt.Sprintf(
			"; launching %s, because a gang or replica that is larger is launched whole and alone",
			phrase.Pods(given),
		)
	}
	return fmt.Sprintf(" (%s %d)", have, now)
}

// capNames names the caps that apply to a group.
func (w *Writer) capNames(g *fleet.Group) string {
	var names []string
	if w.Policy.MaxInFlight > 0 {
		names = append(names, fmt.Sprintf("maxInFlight %d", w.Policy.MaxInFlight))
	}
	if g.InFlight != vector.MaxCount {
		names = append(names, search.ConservativeMode)
	}
	return strings.Join(names, " and ")
}

// Following counts the pods of a group that follow a launch.
func (w *Writer) Following(i int) string {
	if n := w.HeldOf(i); n > 0 && (w.Groups[i].Trying() || len(w.Ceilings.UnprovenPools(i)) > 0) {
		return fmt.Sprintf("; %d more follow when a pod has joined", n)
	} else if n > 0 {
		return fmt.Sprintf("; %d more follow when earlier pods have joined, because of %s", n, w.capNames(&w.Groups[i]))
	}
	return ""
}
