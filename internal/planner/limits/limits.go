// Package limits says in sentences which limit prevents more pods of a group: its maximum, that of all groups, a quota,
// the nodes and their pools, or an in-flight cap. It must not know the demand that waits, and must not change a
// decision.
package limits

import (
	"fmt"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/search"
)

// Writer names the limits of one decision. It reads the decision and never changes it.
type Writer struct {
	*search.Search
	shortages shortages
}

func New(p *search.Search) *Writer { return &Writer{Search: p} }

// Limit names the limit that prevents one more replica of a group.
func (w *Writer) Limit(i int, given []int64) (model.Reason, bool) {
	g := &w.Groups[i]
	pods := g.Current + given[i]
	switch {
	case g.Blocked.Code != "":
		return g.Blocked, true
	case pods+g.Hosts > g.MaxPods:
		return model.Reason{
			Code:    model.CodeAtMax,
			Message: fmt.Sprintf("group %s is at its maximum of %d (%s)", g.Name, g.MaxPods, w.having(i, given[i])),
		}, true
	case w.Spare(given) < g.Hosts:
		return w.workersLimit(g, given), true
	}
	if reason, ok := w.quotaLimit(i, given); ok {
		return reason, true
	}
	if reason, ok := w.poolLimit(i, given); ok {
		return reason, true
	}
	return w.inFlightLimit(i, given)
}

// workersLimit describes the bound on all groups: either it is reached, or what is left is smaller than a replica.
func (w *Writer) workersLimit(g *fleet.Group, given []int64) model.Reason {
	if n := w.Spare(given); n > 0 {
		return model.Reason{
			Code: model.CodeMaxWorkers,
			Message: fmt.Sprintf(
				"all groups together may have %d (%s), and one replica of group %s is %s",
				w.Bound,
				w.havingAll(given),
				g.Name,
				phrase.Pods(g.Hosts),
			),
		}
	}
	return model.Reason{
		Code:    model.CodeMaxWorkers,
		Message: fmt.Sprintf("all groups together are at their maximum of %d", w.Bound),
	}
}

func (w *Writer) having(i int, given int64) string {
	text := fmt.Sprintf("has %d", w.Groups[i].Current)
	if given > 0 {
		text += fmt.Sprintf(", launching %d", given)
	}
	return text
}
