package readiness

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/cost"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// berth is where the next replicas of a group would be: on existing nodes or on new ones.
type berth struct {
	group    int
	replicas int64
	cost     float64
	wait     Wait
	// kept: the plan launches the group already.
	kept bool
}

func (a berth) compare(b berth) int {
	return cmp.Or(cost.CompareNearly(a.cost, b.cost), a.wait.Compare(b.wait), vector.CompareBool(b.kept, a.kept))
}

// Soonest distributes replicas among equal groups so that they are ready soonest, in addition to fixed pods. given are
// those of the plan: of groups that are ready equally soon, those that it launches come first, then names.
func (y *Readiness) Soonest(set []int, fixed, given []int64, replicas int64) []int64 {
	hosts := y.groups[set[0]].Hosts
	on, launches := y.vacancies().Copy(), slices.Clone(fixed)
	for i, n := range fixed {
		on.Take(i, n)
	}
	for replicas > 0 {
		var berths []berth
		for _, i := range set {
			room := min(replicas, y.groups[i].Room(launches[i])/hosts)
			free, kept := on.Room(i), given[i] > fixed[i]
			there := y.costs.PerReplica[i] - y.costs.Waiting[i]
			berths = append(
				berths,
				berth{i, min(room, free.Used/hosts), there, Wait{}, kept},
				berth{i, min(room, free.All/hosts), there, Wait{opened: 1}, kept},
				berth{i, room, y.costs.PerReplica[i], Wait{added: 1, seconds: y.seconds[i]}, kept},
			)
		}
		berths = slices.DeleteFunc(berths, func(b berth) bool { return b.replicas == 0 })
		if len(berths) == 0 {
			break
		}
		next := slices.MinFunc(berths, berth.compare)
		on.Take(next.group, next.replicas*hosts)
		launches[next.group] += next.replicas * hosts
		replicas -= next.replicas
	}
	return launches
}
