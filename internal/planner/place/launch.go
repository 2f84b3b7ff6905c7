package place

// Strategy is how new nodes are chosen. No strategy is best for every demand, so a plan tries several.
type Strategy int

const (
	// fullest chooses the nodes that are filled best, as Ray does.
	fullest Strategy = iota
	// cheapest chooses the nodes that serve most for their cost.
	cheapest
	// fewest chooses the nodes that serve most, for when the number of pods is limited.
	fewest
	// asRay places everything in Ray's order, also on existing nodes.
	asRay
	// roomiest is like asRay, but gangs use the nodes with the most room.
	roomiest
)

// raysOrder reports whether demand is placed in Ray's order.
func (how Strategy) raysOrder() bool { return how >= asRay }

// launchBest repeatedly launches a replica of the group that waiting demand fills best. It repeats a pattern as often
// as possible, so the work does not depend on the counts.
func (p *Search) launchBest(l *Ledger, b *Batch) {
	if b.join > 0 || b.served() {
		return
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
				pat, _ := p.newPattern(b, g.Shape, g.Shape.Total, g.others, g.Hosts, b.quota(&NodeClass{}))
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

// fairPrices returns what one bundle of each item costs on the cheapest group that serves it, if a node of the group
// held nothing else. The number of bundles that wait does not matter, because the rest of the node serves others.
func (p *Search) fairPrices(l *Ledger, b *Batch) []float64 {
	if l.how != cheapest {
		return nil
	}
	fair, most := make([]float64, len(b.items)), int64(MaxCount)
	if b.apart > 0 {
		most = b.apart
	}
	for at, it := range b.items {
		for i := range p.Groups {
			g := &p.Groups[i]
			if b.left[at] == 0 || l.room[i] < g.Hosts && !l.holdsBack(i) || it.Rank[g.Shape.Labels] == NoMatch {
				continue
			}
			n := g.Shape.Total.Times(it.Need, most)
			if g.others == nil {
				n *= g.Hosts
			} else if it.Rank[g.others.Labels] != NoMatch {
				n += g.others.Total.Times(it.Need, most) * (g.Hosts - 1)
			}
			if n > 0 {
				if each := p.Costs.PerReplica[i] / float64(n); fair[at] == 0 || each < fair[at] {
					fair[at] = each
				}
			}
		}
	}
	return fair
}

// rate adds to the score of a pattern what the strategy optimizes.
func (p *Search) rate(pat *pattern, how Strategy, b *Batch, group int, hosts int64, fair []float64) {
	switch how {
	case cheapest:
		var worth float64
		for _, u := range pat.uses {
			worth += float64(u.count) * fair[u.item]
		}
		share := float64(hosts) / float64(p.Groups[group].Hosts)
		pat.score.thrift = worth / max(p.Costs.PerReplica[group]*share, 1e-9)
	case fewest:
		for _, u := range pat.uses {
			pat.score.whole += float64(u.count) * p.Needed(b.items[u.item])
		}
		pat.score.most = pat.score.whole / float64(hosts)
	}
}

func (p *Search) launchPattern(l *Ledger, b *Batch, g *Group, pat *pattern) {
	replicas := pat.times(b, min(l.room[g.Shape.group], l.spare)/g.Hosts)
	launched := l.launch(g, g.Hosts*replicas)
	for _, f := range pat.hosts {
		class := launched[0]
		class.Shape, class.free, class.count = f.shape, f.shape.Total, f.count*replicas
		if len(f.take) > 0 {
			class.free, class.touched = f.after, true
			class.named = b.named(f.take)
		}
		b.mark(&class, f.take)
		l.classes = append(l.classes, class)
		l.note(b, &class, f.take, true)
	}
	for _, u := range pat.uses {
		b.left[u.item] -= u.count * replicas
	}
}
