package reasons

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// trialReason explains a replica that is launched to find out what its pods announce.
func (w *Writer) trialReason(i int) (model.Reason, bool) {
	trial := w.TrialOf(i)
	if trial == nil {
		return model.Reason{}, false
	}
	what := phrase.Describe(trial.Item.Asked())
	if trial.Gang != nil {
		what = strings.TrimSpace("gang "+trial.Gang.ID) + ": " + what
	}
	return model.Reason{
		Code: model.CodeTrying,
		Message: fmt.Sprintf("trying %s for %s: %s", phrase.Pods(w.Groups[i].Hosts), what,
			unknownIn(trial.Awaited, trial.Gang)),
	}, true
}

// awaitedReason explains why a group may serve an item or not, by what its new pods announce. It reports false if their
// announcements make no difference.
func (w *Writer) awaitedReason(i int, it *vector.Item, gang *fleet.Gang, given []int64) (model.Reason, bool) {
	wants := w.Wants(i, it, gang)
	if len(wants) == 0 {
		return model.Reason{}, false
	}
	g, text := &w.Groups[i], unknownIn(wants, gang)
	because := func(code, then string) (model.Reason, bool) {
		return model.Reason{Code: code, Message: text + "; " + then}, true
	}
	for _, a := range wants {
		if !w.Undecided(a, gang, g) {
			return because(model.CodeLabels, undecidedFix(a, gang))
		}
	}
	switch {
	case w.TrialOf(i) != nil:
		return because(model.CodeTrying, "trying "+phrase.Pods(g.Hosts))
	case given[i]+g.Pending() > 0:
		return because(model.CodeTrying, "the pods on their way show it")
	}
	if limit, ok := w.Limit(i, given); ok {
		return because(limit.Code, limit.Message)
	}
	idle := func(n fleet.Node) bool { return n.GroupIndex == i && n.State == model.Idle && n.Stop == "" }
	if slices.ContainsFunc(w.Nodes, idle) {
		return because(model.CodeLabels, "its idle workers do not serve it, so no other is tried beside them")
	}
	return because(model.CodeLabels, "groups that are known to serve it go first")
}

// openReason explains that only announcements that are unknown decide whether an item, or an item of a gang, can be
// served. It reports false if no group is open for it.
func (w *Writer) openReason(items []*vector.Item, gang *fleet.Gang, given []int64) (model.Reason, bool) {
	code, open := model.Capped, false
	var parts []string
	for i := range w.Groups {
		for _, it := range items {
			reason, ok := w.awaitedReason(i, it, gang, given)
			if !ok {
				continue
			}
			if open = true; reason.Code == model.CodeTrying {
				code = model.CodeTrying
			}
			parts = append(parts, "group "+w.Groups[i].Name+": "+reason.Message)
			break
		}
	}
	return model.Reason{Code: code, Message: phrase.List(parts)}, open
}

// openDomains explains why groups that may have the gang's topology label are not planned for it.
func (w *Writer) openDomains(g *fleet.Gang, o fleet.Option, given []int64) (code, text string, trying bool) {
	reason, open := w.openReason(o.Items, g, given)
	if !open {
		return "", "", false
	}
	return reason.Code, reason.Message, reason.Code == model.CodeTrying
}
