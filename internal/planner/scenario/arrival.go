package scenario

import "heliostat.dev/heliostat/pkg/nodepool/arrival"

// arrival reads STAGE "what holds it up" [entered TIME] [by TIME] [late TIME].
func (r *reader) arrival() *arrival.State {
	s := &arrival.State{Stage: arrival.Stage(r.text("a stage")), Message: r.text("what holds it up, or \"\"")}
	if r.accept("entered") {
		s.Since = r.moment("entered")
	}
	if r.accept("by") {
		s.ExpectedAt = r.moment("by")
	}
	if r.accept("late") {
		s.LateAt = r.moment("late")
	}
	return s
}

func (w *words) arrival(s *arrival.State) {
	if s == nil {
		return
	}
	w.add("arrives", quote(string(s.Stage)), quote(s.Message))
	w.when(!s.Since.IsZero(), "entered", momentText(s.Since))
	w.when(!s.ExpectedAt.IsZero(), "by", momentText(s.ExpectedAt))
	w.when(!s.LateAt.IsZero(), "late", momentText(s.LateAt))
}
