package main

import (
	"encoding/json"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// answer is what a planner does about a snapshot, in a form that fits both planners.
type answer struct {
	// launch counts pods per group.
	launch map[string]int
	// stop maps each pod to stop to its reason.
	stop map[string]string
	// unservedRequests counts the unserved bundles of each request of the snapshot.
	unservedRequests []int64
	// unservedGangs marks the unserved gangs.
	unservedGangs      []bool
	unservedConstraint bool
}

// answerOf converts a plan of Heliostat.
func answerOf(s planner.Snapshot, plan planner.Plan) answer {
	a := answer{
		launch: plan.Launch, stop: map[string]string{},
		unservedRequests: make([]int64, len(s.Requests)), unservedGangs: make([]bool, len(s.Gangs)),
		unservedConstraint: len(plan.InfeasibleRequestResources) > 0,
	}
	for _, t := range plan.Terminate {
		a.stop[t.Pod] = t.Reason
	}
	left := map[string]int64{}
	for _, unmet := range plan.InfeasibleRequests {
		left[keyOf(unmet.Request)] += unmet.Count
	}
	for i, request := range s.Requests {
		key := keyOf(request)
		a.unservedRequests[i] = min(request.Count, left[key])
		left[key] -= a.unservedRequests[i]
	}
	for i, gang := range s.Gangs {
		a.unservedGangs[i] = slices.ContainsFunc(
			plan.InfeasibleGangRequests,
			func(u planner.UnmetGang) bool { return u.ID == gang.ID },
		)
	}
	return a
}

// keyOf is equal for requests that differ only in their counts.
func keyOf(r raydemand.Request) string {
	texts := []string{r.Bundle.String()}
	for _, selector := range r.Selectors {
		texts = append(texts, selector.String())
	}
	return strings.Join(texts, " | ")
}

// pods counts the launched pods.
func (a answer) pods() int {
	total := 0
	for _, n := range a.launch {
		total += n
	}
	return total
}

// unserved counts the unserved requests, gangs and constraints.
func (a answer) unserved() int64 {
	var total int64
	for _, n := range a.unservedRequests {
		total += n
	}
	for _, unserved := range a.unservedGangs {
		if unserved {
			total++
		}
	}
	if a.unservedConstraint {
		total++
	}
	return total
}

// price is the hourly price of the launched pods; groups without a price cost nothing.
func (a answer) price(s planner.Snapshot) float64 {
	total := 0.0
	for _, g := range s.Groups {
		if g.Price != nil {
			total += float64(a.launch[g.Name]) * *g.Price
		}
	}
	return total
}

// clone returns a copy by way of the JSON form, which is what `autoscaler plan` reads.
func clone(s planner.Snapshot) (planner.Snapshot, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return planner.Snapshot{}, err
	}
	return snapshotfile.ReadSnapshot(strings.NewReader(string(raw)), s.Name)
}
