package planner

import (
	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/vector"
)

// strategy says by what new nodes are chosen. None is best for every demand, so a plan tries several.
type strategy int

const (
	// fullest takes the nodes that are filled best, as Ray does.
	fullest strategy = iota
	// thriftiest takes the nodes that serve most for what they cost.
	thriftiest
	// fewest takes the nodes that serve most, for when the number of pods is what is short.
	fewest
	// jointly answers all of a batch together by column generation; what that leaves goes the thriftiest way.
	jointly
	// asRay places in Ray's order in all: also on what is there or on its way.
	asRay
	// roomiest is like asRay, but gangs take the nodes with most room.
	roomiest
)

// raysOrder reports whether demand is placed in Ray's order.
func (how strategy) raysOrder() bool { return how >= asRay }

// launchBest launches replica after replica of the group that what waits fills best. A pattern is repeated as often
// as it lasts, so the work does not depend on the counts.
func (p *Placer) launchBest(l *ledger, b *batch) {
	if b.join > 0 || b.served() {
		return
	}
	l.joinable = l.joinable || b.joinable()
	if l.how == jointly {
		p.launchJointly(l, b)
	}
	patterns := make([]*pattern, len(p.Groups))
	fair := p.fairPrices(l, b)
	for !b.served() {
		best := -1
		for i := range p.Groups {
			g := &p.Groups[i]
			if min(l.room[i], l.spare) < g.Hosts || !b.admitsLabels(g.Shape.Labels) {
				continue
			}
			if patterns[i] == nil || !patterns[i].holds(b) {
				pat, _ := p.newPattern(b, g.Shape, g.Shape.Total, g.Hosts, b.quota(&lot{}))
				p.rate(&pat, l.how, b, i, g.Hosts, fair)
				patterns[i] = &pat
			}
			if len(patterns[i].uses) > 0 && (best < 0 || l.how.prefers(patterns[i], i, patterns[best], best)) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		p.launchPattern(l, b, &p.Groups[best], patterns[best])
	}
}

// fairPrices is what one bundle of each item costs on the group that serves it cheapest, filled with nothing
// else, however few of them wait: the rest of the node serves others.
func (p *Placer) fairPrices(l *ledger, b *batch) []float64 {
	if l.how != thriftiest && l.how != jointly {
		return nil
	}
	fair, most := make([]float64, len(b.items)), int64(vector.MaxCount)
	if b.apart > 0 {
		most = b.apart
	}
	for at, it := range b.items {
		for i := range p.Groups {
			g := &p.Groups[i]
			if b.left[at] == 0 || l.room[i] < g.Hosts && !l.holdsBack(i) || it.Rank[g.Shape.Labels] == vector.NoMatch {
				continue
			}
			if n := g.Shape.Total.Times(it.Need, most); n > 0 {
				if each := p.yard.PerReplica[i] / float64(n*g.Hosts); fair[at] == 0 || each < fair[at] {
					fair[at] = each
				}
			}
		}
	}
	return fair
}

// rate completes the score of a pattern on hosts of a group by what the strategy looks at.
func (p *Placer) rate(pat *pattern, how strategy, b *batch, group int, hosts int64, fair []float64) {
	switch how {
	case thriftiest, jointly:
		var worth float64
		for _, u := range pat.uses {
			worth += float64(u.Count) * fair[u.Item]
		}
		share := float64(hosts) / float64(p.Groups[group].Hosts)
		pat.score.thrift = worth / max(p.yard.PerReplica[group]*share, 1e-9)
	case fewest:
		for _, u := range pat.uses {
			pat.score.whole += float64(u.Count) * p.Needed(b.items[u.Item])
		}
		pat.score.most = pat.score.whole / float64(hosts)
	}
}

func (p *Placer) launchPattern(l *ledger, b *batch, g *fleet.Group, pat *pattern) {
	replicas := pat.times(b, min(l.room[g.Shape.Group], l.spare)/g.Hosts)
	for _, f := range pat.hosts {
		lot := l.launch(g, f.count*replicas)
		if len(f.take) > 0 {
			lot.free, lot.touched = f.after, true
			lot.named = b.named(f.take)
		}
		b.mark(&lot, f.take)
		l.lots = append(l.lots, lot)
		l.record(b, g.Shape.Group, lot.count, f.take)
	}
	for _, u := range pat.uses {
		b.left[u.Item] -= u.Count * replicas
	}
}
