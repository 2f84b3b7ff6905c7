package planner

import (
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/search"
)

// ComputeUntil is Compute, and gives up soon after stop is closed: it reports false then, and there is no plan. It is for plans that
// somebody asked for and may cease to wait for. A nil stop never ends it.
func ComputeUntil(stop <-chan struct{}, s model.Snapshot, policy model.Policy) (plan model.Plan, done bool) {
	done = placing.UnlessBrokenOff(func() {
		p, given, out := search.Decide(stop, &s, policy)
		plan = newReporter(p).report(given, out)
	})
	return plan, done
}
