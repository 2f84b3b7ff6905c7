package observe

import (
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// longestHold bounds how long a series of placements may delay idle drains.
const longestHold = 5 * time.Second

// Gangs reconciles two ages in one state: the list of placement groups comes from the GCS itself and is at most
// milliseconds old, while the free resources of nodes are up to a second old. So a gang that has just arrived may fit
// on workers that still look busy, and one that has just left the list may be on workers that still look idle.
type Gangs struct {
	firstSeen map[string]time.Time
	// heldUntil is until when a gang's placement may not show yet; heldSince is when that state began.
	heldUntil, heldSince time.Time
}

// Observe adds the gangs of one reading.
func (g *Gangs) Observe(now time.Time, pending []raydemand.Gang) {
	firstSeen := make(map[string]time.Time, len(pending))
	for _, gang := range pending {
		id := gangID(gang)
		firstSeen[id] = earlier(g.firstSeen, id, now)
	}
	for id := range g.firstSeen {
		if _, waits := firstSeen[id]; !waits {
			if !now.Before(g.heldUntil) {
				g.heldSince = now
			}
			g.heldUntil = now.Add(lagWindow)
		}
	}
	g.firstSeen = firstSeen
}

// young reports whether nodes' reports may be older than the gang.
func (g *Gangs) young(now time.Time, gang raydemand.Gang) bool {
	at, known := g.firstSeen[gangID(gang)]
	return known && now.Sub(at) < lagWindow
}

// MayHidePlacement reports whether a gang may have been placed on a worker that still looks idle.
func (g *Gangs) MayHidePlacement(now time.Time) bool {
	return now.Before(g.heldUntil) && now.Sub(g.heldSince) < longestHold
}

func gangID(gang raydemand.Gang) string {
	if gang.ID != "" {
		return gang.ID
	}
	return fmt.Sprint(gang.Strategy, gang.Bundles)
}

// Launches returns the plan's launches, less those that a young gang may not need because workers that look busy have
// become free. What it needs in any case is launched at once, and the rest once the reports are newer than the gang. A
// gang in an empty cluster waits for nothing.
//
//	launch = min(need as reported, max(need of the other demand, need if the busy workers are free))
//
// It never exceeds the plan's launches of any group, so it keeps the plan's limits.
func (g *Gangs) Launches(
	now time.Time, plan planner.Plan, snapshot planner.Snapshot, compute func(planner.Snapshot) planner.Plan,
) map[string]int {
	isYoung := func(gang raydemand.Gang) bool { return g.young(now, gang) }
	if len(plan.Launch) == 0 || !slices.ContainsFunc(snapshot.Gangs, isYoung) ||
		!slices.ContainsFunc(snapshot.Nodes, busy) {
		return plan.Launch
	}
	atBest := snapshot
	atBest.Nodes = slices.Clone(snapshot.Nodes)
	for i, n := range atBest.Nodes {
		if busy(n) {
			atBest.Nodes[i].Available = n.Total
		}
	}
	others := snapshot
	others.Gangs = slices.DeleteFunc(slices.Clone(snapshot.Gangs), isYoung)
	best, rest := compute(atBest).Launch, compute(others).Launch
	launch := map[string]int{}
	for group, pods := range plan.Launch {
		if pods = min(pods, max(rest[group], best[group])); pods > 0 {
			launch[group] = pods
		}
	}
	return launch
}

func busy(n planner.Node) bool { return n.State == planner.Running && !n.Available.Equal(n.Total) }
