package reasons

import (
	"cmp"
	"fmt"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// WarmReason explains what the plan does for one entry of warm capacity.
func (w *Writer) WarmReason(e *search.WarmEntry, given []int64) model.Reason {
	text := w.warmCounts(e)
	code := warmCode(e)
	if code == model.CodeSchedule {
		text += ", by the schedule " + e.Schedule
	}
	if e.Missing() == 0 {
		return model.Reason{Code: code, Message: text}
	}
	why := w.warmObstacle(e, given)
	return model.Reason{Code: why.Code, Message: phrase.Join(text, why.Message)}
}

// warmCode is the code of an entry that has all it wants.
func warmCode(e *search.WarmEntry) string {
	if e.Schedule != "" {
		return model.CodeSchedule
	}
	return model.CodeWarm
}

// warmCounts counts what an entry wants and has: 1 of 3 workers of group gpu free, 1 starting, launching 1.
func (w *Writer) warmCounts(e *search.WarmEntry) string {
	what := phrase.Describe(e.Request()) + " free"
	if e.Item == nil {
		what = phrase.OneOrMany(e.Count, "worker", "workers") + " of group " + e.WarmEntry.Group + " free"
	}
	text := fmt.Sprintf("%d of %d %s", e.Ready, e.Count, what)
	if e.Item != nil {
		text = fmt.Sprintf("%d of %d × %s", e.Ready, e.Count, what)
	}
	if e.Coming > 0 {
		text += fmt.Sprintf(", %d starting", e.Coming)
	}
	if e.Launching > 0 {
		text += fmt.Sprintf(", launching %d", e.Launching)
	}
	return text
}

// warmObstacle explains why an entry gets less than it wants.
func (w *Writer) warmObstacle(e *search.WarmEntry, given []int64) model.Reason {
	switch {
	case e.Item == nil && e.Group < 0:
		return model.Reason{Code: model.WarmNoGroup,
			Message: fmt.Sprintf("there is no worker group %q", e.WarmEntry.Group)}
	case e.Item != nil && !w.Possible(e.Item):
		return model.Reason{Code: model.WarmImpossible, Message: "no worker group could ever hold it"}
	}
	first, limit := "", model.Reason{}
	for i := range w.Groups {
		g := &w.Groups[i]
		if i != e.Group && (e.Item == nil || !e.Item.Suits(g.Shape)) {
			continue
		}
		reason, limited := w.Limit(i, given)
		if !limited && w.WarmRules.Launch[i] {
			reason, limited = w.InFlightCap(i, given)
		}
		switch {
		case limited && (limit.Code == "" || e.Item == nil):
			limit = reason
		case !limited && !w.WarmRules.Launch[i]:
			first = cmp.Or(first, g.Name)
		}
	}
	switch {
	case first != "":
		return model.Reason{Code: model.WarmDemandFirst, Message: fmt.Sprintf(
			"demand waits for what workers of group %s would take, and it comes first", first)}
	case limit.Code != "":
		return model.Reason{Code: cmp.Or(limit.Code, model.WarmCapped), Message: limit.Message}
	}
	return model.Reason{Code: model.WarmDemandFirst,
		Message: "with more pods on their way, demand would be placed in another way, and it comes first"}
}

// warmReasons explains what a group has for warm capacity: one reason for each entry that has a part of it.
func (w *Writer) warmReasons(i int, given []int64, out *search.Outcome) (all []model.Reason) {
	g := &w.Groups[i]
	for k := range w.Warm {
		e := &w.Warm[k]
		own := e.Group == i
		if !own && w.WarmPods(e)[g.Name] == 0 && (e.Item == nil || e.Launching == 0 || out.WarmLaunched(i) == 0) {
			continue
		}
		reason := w.WarmReason(e, given)
		if own || e.Missing() == 0 {
			reason.Message = e.Name + ": " + reason.Message
			all = append(all, reason)
			continue
		}
		// What a bundle lacks is not the fault of the group that holds a part of it.
		reason.Code = warmCode(e)
		reason.Message = e.Name + ": " + reason.Message
		all = append(all, reason)
	}
	return all
}

// WarmFindings reports entries that can have no effect.
func (w *Writer) WarmFindings() []raydemand.Finding {
	var all []raydemand.Finding
	policy := "capacity policy"
	if w.WarmPolicy != "" {
		policy = w.WarmPolicy
	}
	for k := range w.Warm {
		e := &w.Warm[k]
		switch {
		case e.Item == nil && e.Group < 0:
			all = append(all, capacity.GroupUnknown(policy, e.Name, e.WarmEntry.Group, capacity.NoWorkers))
		case e.Item != nil && !w.Possible(e.Item):
			all = append(all, raydemand.Finding{Code: model.FindingWarmImpossible, Severity: raydemand.Error,
				Object: policy, Field: e.Name, Seen: phrase.Describe(e.Request()),
				Why: "no worker group could ever hold it, so nothing is kept warm for it",
				Fix: "ask for what one worker of some group has"})
		}
	}
	return all
}
