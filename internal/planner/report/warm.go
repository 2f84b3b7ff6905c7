package report

import (
	"slices"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/search"
)

// warmPlans returns what the plan does for each entry of the warm capacity, those with a group first.
func (r *Reporter) warmPlans(given []int64, out *search.Outcome) []model.WarmPlan {
	var all []model.WarmPlan
	for k := range r.Warm {
		e := &r.Warm[k]
		row := model.WarmPlan{WarmEntry: *e.WarmEntry, Ready: e.Ready, Coming: e.Coming, Launching: e.Launching,
			Pods: r.WarmPods(e), Reason: r.WarmReason(e, given)}
		for _, n := range e.Nodes {
			if r.WarmFor(out, n) == e {
				row.Kept = append(row.Kept, r.Nodes[n].Pod)
			}
		}
		slices.Sort(row.Kept)
		all = append(all, row)
	}
	return all
}
