package search

import (
	"slices"

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
	if len(p.Ready.Twins) == 0 || vector.Sum(given) == vector.Sum(first) || p.tired() {
		return given, out
	}
	best := contender{given, out, p.verdict(given, &out)}
	tries := min(maxExchanges, p.trials(&out))
	for _, set := range p.Ready.Twins {
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
	return found, order < 0 || order == 0 && p.Ready.WaitFor(given).Compare(p.Ready.WaitFor(from.given)) < 0
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
	soonest := p.Ready.Soonest(set, fixed, given, replicas)
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
