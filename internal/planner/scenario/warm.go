package scenario

import (
	"fmt"
	"strconv"

	"heliostat.dev/heliostat/internal/planner/model"
)

// warm reads what a capacity policy wants free: policy "NAME", or an entry such as 2 of gpu or
// 2 × {GPU: 1}, each with by "SCHEDULE" behind it.
func (b *builder) warm(r *reader) {
	s := b.snapshot
	if s.Warm == nil {
		s.Warm = &model.Warm{}
	}
	w := s.Warm
	switch {
	case r.accept("policy"):
		w.Policy = r.text("where the policy is written")
	default:
		e := model.WarmEntry{Name: fmt.Sprintf("keepWarm[%d]", len(w.Keep))}
		if len(r.tokens) > 1 && r.tokens[1].text == "of" {
			e.Count = int64(r.count("how many workers"))
			r.accept("of")
			e.Group = r.text("a group")
		} else {
			request := r.request()
			e.Count, e.Resources = request.Count, request.Bundle
			e.Selectors, e.Slice = request.Selectors, request.Slice
		}
		if r.accept("by") {
			e.Schedule = r.text("a schedule")
		}
		w.Keep = append(w.Keep, e)
	}
	if !r.done() {
		r.fail("%q: want the end of the line, or by SCHEDULE", r.peek())
	}
}

func warmTexts(s *model.Snapshot) []string {
	if s.Warm == nil {
		return nil
	}
	var texts []string
	w := s.Warm
	if w.Policy != "" {
		texts = append(texts, "policy "+quote(w.Policy))
	}
	for i := range w.Keep {
		e := &w.Keep[i]
		request := e.Request()
		line := requestText(&request)
		if e.Group != "" {
			line = strconv.FormatInt(e.Count, 10) + " of " + quote(e.Group)
		}
		if e.Schedule != "" {
			line += " by " + quote(e.Schedule)
		}
		texts = append(texts, line)
	}
	return texts
}

func warmOutcome(p *model.WarmPlan) string {
	line := fmt.Sprintf("warm %s %d ready", quote(p.Name), p.Ready)
	if p.Coming > 0 {
		line += fmt.Sprintf(", %d coming", p.Coming)
	}
	if p.Launching > 0 {
		line += fmt.Sprintf(", %d launching", p.Launching)
	}
	if missing := p.Missing(); missing > 0 {
		line += fmt.Sprintf(", %d missing", missing)
	}
	for _, pod := range p.Kept {
		line += " keeps " + quote(pod)
	}
	return with(line+" "+p.Reason.Code, p.Reason.Message)
}
