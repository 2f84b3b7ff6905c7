package search

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/planner/cost"
	"heliostat.dev/heliostat/internal/planner/placing"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// maxExchanges limits how often a plan is placed again to move launches between equal groups. A move of all launches
// takes one, and one that only a part of them allows a few more.
const maxExchanges = 16

// move is a number of replicas that another group launches.
type move struct {
	from, to int
	replicas int64
}

// exchange moves launches between groups that serve the same at the same cost, to those whose pods are ready sooner.
// The strategies of launching do not look at that: of equal groups they take the first by name. What the moved pods
// cannot serve stays where it is, for example work that selects a group by its labels.
func (p *Search) exchange(first, given []int64, out Outcome) ([]int64, Outcome) {
	if len(p.ready.twins) == 0 || vector.Sum(given) == vector.Sum(first) || p.tired() {
		return given, out
	}
	best := contender{given, out, p.verdict(given, &out)}
	tries := min(maxExchanges, p.trials(&out))
	for _, set := range p.ready.twins {
		for _, m := range p.moves(set, first, &best) {
			for n := m.replicas; n > 0 && m.replicas > 0 && tries > 0 && !p.tired(); tries-- {
				n = min(n, m.replicas)
				if next, better := p.moved(&best, move{m.from, m.to, n}, first); better {
					best, m.replicas = next, m.replicas-n
				} else {
					n /= 2
				}
			}
		}
	}
	return best.given, best.out
}

// moved returns the plan after a move, and whether it is better: complete, serving as much, by choices as good.
func (p *Search) moved(from *contender, m move, first []int64) (contender, bool) {
	given, hosts := slices.Clone(from.given), p.Groups[m.from].Hosts
	given[m.from] -= m.replicas * hosts
	given[m.to] += m.replicas * hosts
	within := slices.Clone(given)
	if p.WithinShared(p.CeilingsNow(), within, first); !slices.Equal(within, given) {
		return contender{}, false
	}
	out := p.bestRound(given, placing.Fullest)
	found := contender{given, out, p.verdict(given, &out)}
	if !found.settled() || !out.asGood(&from.out) || out.fallbacks() > from.out.fallbacks() {
		return contender{}, false
	}
	order := found.compare(&from.verdict)
	return found, order < 0 || order == 0 && p.ready.waitFor(given).compare(p.ready.waitFor(from.given)) < 0
}

// moves compares a plan's launches of equal groups with those that are ready soonest. Only groups between which some
// work can move count: a plan may have many equal groups that differ by a label which all work selects.
func (p *Search) moves(set []int, first []int64, plan *contender) (moves []move) {
	movable := p.movable(set, &plan.out)
	if len(movable) == 0 {
		return nil
	}
	given, hosts := plan.given, p.Groups[set[0]].Hosts
	fixed, replicas := slices.Clone(given), int64(0)
	for _, i := range set {
		g := &p.Groups[i]
		minimum := vector.RoundUp(max(0, g.MinPods-g.Remaining()), hosts)
		fixed[i] = min(given[i], max(first[i], minimum))
		replicas += (given[i] - fixed[i]) / hosts
	}
	soonest := p.soonest(set, fixed, given, replicas)
	for _, pair := range movable {
		n := min(soonest[pair.to]-given[pair.to], given[pair.from]-soonest[pair.from]) / hosts
		if n > 0 {
			moves = append(moves, move{pair.from, pair.to, n})
			soonest[pair.to], soonest[pair.from] = soonest[pair.to]-n*hosts, soonest[pair.from]+n*hosts
		}
	}
	return moves
}

// movable lists the pairs of groups where some of what the first one is launched for could be on the other.
func (p *Search) movable(set []int, out *Outcome) (pairs []move) {
	for _, from := range set {
		to := map[int]bool{}
		for i := range out.Log {
			if e := &out.Log[i]; e.Group == from {
				for _, other := range set {
					to[other] = to[other] || other != from && e.Item.Suits(p.Groups[other].Shape)
				}
			}
		}
		for _, other := range set {
			if to[other] {
				pairs = append(pairs, move{from: from, to: other})
			}
		}
	}
	return pairs
}

// berth is where the next replicas of a group would be: on existing nodes or on new ones.
type berth struct {
	group    int
	replicas int64
	cost     float64
	wait     wait
	// kept: the plan launches the group already.
	kept bool
}

func (a berth) compare(b berth) int {
	return cmp.Or(cost.CompareNearly(a.cost, b.cost), a.wait.compare(b.wait), vector.CompareBool(b.kept, a.kept))
}

// soonest distributes replicas among equal groups so that they are ready soonest, in addition to fixed pods. given are
// those of the plan: of groups that are ready equally soon, those that it launches come first, then names.
func (p *Search) soonest(set []int, fixed, given []int64, replicas int64) []int64 {
	hosts := p.Groups[set[0]].Hosts
	on, launches := p.ready.vacancies().Copy(), slices.Clone(fixed)
	for i, n := range fixed {
		on.Take(i, n)
	}
	for replicas > 0 {
		var berths []berth
		for _, i := range set {
			room := min(replicas, p.Groups[i].Room(launches[i])/hosts)
			free, kept := on.Room(i), given[i] > fixed[i]
			there := p.Costs.PerReplica[i] - p.Costs.Waiting[i]
			berths = append(
				berths,
				berth{i, min(room, free.Used/hosts), there, wait{}, kept},
				berth{i, min(room, free.All/hosts), there, wait{opened: 1}, kept},
				berth{i, room, p.Costs.PerReplica[i], wait{added: 1, seconds: p.ready.seconds[i]}, kept},
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
