package report

import (
	"cmp"
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
)

// arrival continues a sentence about a starting worker: where it is, since when, and when it is expected.
func (r *Reporter) arrival(a *arrival.State) string {
	if a == nil {
		return ""
	}
	text := "; " + a.Stage.Text() + r.lasting(a.Since)
	if a.Message != "" {
		text += ": " + a.Message
	}
	expected := phrase.Expected(a.ExpectedAt, a.LateAt, r.TakenAt)
	return text + "; " + cmp.Or(expected, "when it is expected is not known yet")
}

// lasting says for how long something has lasted; nothing if that is unknown.
func (r *Reporter) lasting(since time.Time) string {
	if since.IsZero() || !since.Before(r.TakenAt) {
		return ""
	}
	return ", for " + phrase.Span(r.TakenAt.Sub(since).Seconds())
}

// arrivals continues a sentence about a group's pods on their way: how many have reached each stage, and when the last
// of them are expected.
func (r *Reporter) arrivals(group int) (text string) {
	count := map[arrival.Stage]int{}
	var last arrival.State
	for i := range r.Nodes {
		a := r.Nodes[i].Arrival
		if r.Nodes[i].GroupIndex != group || r.Nodes[i].State != model.Pending || a == nil {
			continue
		}
		count[a.Stage]++
		if a.ExpectedAt.After(last.ExpectedAt) {
			last = *a
		}
	}
	separator := ": "
	for _, stage := range arrival.Stages {
		if n := count[stage]; n > 0 {
			text += fmt.Sprintf("%s%d %s", separator, n, stage)
			separator = ", "
		}
	}
	if expected := phrase.Expected(last.ExpectedAt, last.LateAt, r.TakenAt); expected != "" {
		text += "; the last is " + expected
	}
	return text
}
