package plannertest

import (
	"fmt"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/model"
)

// DrawWarm draws a snapshot with warm capacity, in part with prices, less demand than DrawSnapshot, and idle
// workers that stay beyond their timeout for it.
func DrawWarm(t *rapid.T) model.Snapshot {
	s := DrawSnapshot(t)
	if rapid.Bool().Draw(t, "calm") {
		s.Requests, s.Gangs = s.Requests[:len(s.Requests)/2], nil
	}
	if rapid.Bool().Draw(t, "withoutCalls") {
		s.Constraint, s.KeptResources = nil, nil
	}
	s.Warm = &model.Warm{Policy: "CapacityPolicy drawn"}
	for i := range rapid.IntRange(1, 3).Draw(t, "entries") {
		e := model.WarmEntry{Name: fmt.Sprintf("keepWarm[%d]", i), Count: rapid.Int64Range(1, 4).Draw(t, "warm")}
		if len(s.Groups) > 0 && rapid.Bool().Draw(t, "ofGroup") {
			e.Group = rapid.SampledFrom(s.Groups).Draw(t, "warmGroup").Name
		} else {
			e.Resources = rapid.SampledFrom(Bundles[:8]).Draw(t, "warmBundle")
			e.Selectors = drawSelectors(t)
		}
		s.Warm.Keep = append(s.Warm.Keep, e)
	}
	for i := range s.Groups {
		if rapid.IntRange(0, 3).Draw(t, "priced") > 0 {
			price := float64(rapid.IntRange(1, 4).Draw(t, "price"))
			s.Groups[i].Price = &price
		}
	}
	return s
}
