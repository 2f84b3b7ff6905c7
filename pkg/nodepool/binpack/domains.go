package binpack

import (
	"math"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// domains is what rules ask about nodes together. It is empty if no kind has rules beyond its own node.
type domains struct {
	// pods counts the pods of each kind in each cell, totals on all nodes.
	pods   [][]int64
	totals []int64
	// opened marks the places of new nodes on which pods have been placed.
	opened []bool
	// rooms are the rooms of kinds with such rules, unknownRoom until somebody asks.
	rooms []int64
}

const unknownRoom = -1

// copyFrom shares the counts of cells, which are replaced rather than changed.
func (d *domains) copyFrom(other *domains) {
	d.pods = append(d.pods[:0], other.pods...)
	d.totals = append(d.totals[:0], other.totals...)
	d.opened = append(d.opened[:0], other.opened...)
	d.rooms = append(d.rooms[:0], other.rooms...)
}

// hold counts pods that are on nodes of a place.
func (s *State) hold(at, kind int, pods int64) {
	site := &s.packer.places[at]
	s.domains.totals[kind] += pods
	s.domains.opened[at] = s.domains.opened[at] || site.isNew
	for _, c := range site.domains {
		if c >= 0 {
			s.domains.pods[c] = slices.Clone(s.domains.pods[c])
			s.domains.pods[c][kind] += pods
		}
	}
	for k := range s.domains.rooms {
		s.domains.rooms[k] = unknownRoom
	}
}

func sumOf(counts []int64, kinds []int) (n int64) {
	for _, k := range kinds {
		n += counts[k]
	}
	return n
}

// level is the lowest number of pods in a domain of a spread rule, and the lowest in another domain than that.
type level struct {
	lowest, others int64
	at             int // the cell with the lowest, or the stack if each node is a domain
	domains        int64
}

const noLevel = math.MaxInt64

func (l *level) add(pods int64, at int, domains int64) {
	l.domains += domains
	switch {
	case pods < l.lowest:
		l.lowest, l.others, l.at = pods, l.lowest, at
		if domains > 1 {
			l.others = pods
		}
	default:
		l.others = min(l.others, pods)
	}
}

// beside returns the lowest number of pods in other domains than this one; noLevel if there are none. With fewer
// domains than the rule wants, it is 0.
func (l *level) beside(at int, minDomains int64) int64 {
	switch {
	case l.domains < minDomains:
		return 0
	case l.at == at:
		return l.others
	}
	return l.lowest
}

// levels returns the level of each spread rule of a kind.
func (s *State) levels(kind int) []level {
	spreads := s.packer.kinds[kind].rules.spreads
	list := make([]level, len(spreads))
	for i := range spreads {
		rule, l := &spreads[i], &list[i]
		*l = level{lowest: noLevel, others: noLevel, at: -1}
		if rule.key == hostKey {
			for at, stack := range s.bins {
				site := &s.packer.places[stack.bin.place]
				if site.counts(kind) && !site.anySize && (!site.isNew || stack.bin.opened) {
					l.add(sumOf(stack.bin.holds, rule.kinds), at, stack.nodes)
				}
			}
			continue
		}
		for c, exists := range rule.exists {
			if exists || s.isOpened(kind, rule.key, c) {
				l.add(sumOf(s.domains.pods[c], rule.kinds), c, 1)
			}
		}
	}
	return list
}

// isOpened reports whether a domain exists because pods have been placed on a new node there.
func (s *State) isOpened(kind, key, c int) bool {
	for at, opened := range s.domains.opened {
		if site := &s.packer.places[at]; opened && site.counts(kind) && site.domains[key] == c {
			return true
		}
	}
	return false
}

// allowance is how many pods a stack may get at once: on each node, and together. pods is how many the domain has that
// are to be spread.
type allowance struct{ each, all, pods int64 }

func (a *allowance) lower(all int64) { a.all = min(a.all, max(all, 0)) }

// allows returns what the rules of a kind allow on a stack now.
func (s *State) allows(kind, at int, levels []level) allowance {
	bin := s.bins[at].bin
	site, r := &s.packer.places[bin.place], &s.packer.kinds[kind].rules
	a := allowance{each: bin.rooms[kind], all: podfit.Unbounded}
	for _, rule := range r.aparts {
		if rule.key == hostKey || site.domains[rule.key] < 0 {
			continue
		}
		pods := s.domains.pods[site.domains[rule.key]][rule.kind]
		if rule.kind == kind {
			a.lower(1 - pods)
		} else if pods > 0 {
			a.all = 0
		}
	}
	if r.together != nil {
		s.allowTogether(&a, r.together, bin, site)
	}
	for i := range r.spreads {
		s.allowSpread(&a, &r.spreads[i], &levels[i], at)
	}
	return a
}

func (s *State) allowTogether(a *allowance, rule *togetherRule, bin *bin, site *site) {
	if sumOf(s.domains.totals, rule.kinds) == 0 {
		first := int64(0)
		if rule.self &&
			!slices.ContainsFunc(rule.keys, func(k int) bool { return k != hostKey && site.domains[k] == noDomain }) {
			first = 1 // The others must be where it is.
		}
		a.lower(first)
		return
	}
	for _, key := range rule.keys {
		switch {
		case key == hostKey && sumOf(bin.holds, rule.kinds) == 0:
			a.all = 0
		case key == hostKey || site.domains[key] == anyDomain:
		case site.domains[key] == noDomain || sumOf(s.domains.pods[site.domains[key]], rule.kinds) == 0:
			a.all = 0
		}
	}
}

func (s *State) allowSpread(a *allowance, rule *spreadRule, l *level, at int) {
	bin := s.bins[at].bin
	site := &s.packer.places[bin.place]
	var pods, least int64
	switch {
	case rule.key == hostKey && site.anySize || rule.key != hostKey && site.domains[rule.key] == anyDomain:
		return
	case rule.key == hostKey:
		pods, least = sumOf(bin.holds, rule.kinds), l.beside(at, rule.minDomains)
		if s.bins[at].nodes > 1 && (!site.isNew || bin.opened) {
			least = min(least, pods)
		}
	case site.domains[rule.key] == noDomain:
		a.all = 0
		return
	default:
		c := site.domains[rule.key]
		pods, least = sumOf(s.domains.pods[c], rule.kinds), l.beside(c, rule.minDomains)
	}
	a.pods = max(a.pods, pods)
	switch {
	case least == noLevel:
	case !rule.self && pods-least > rule.maxSkew:
		a.all = 0
	case !rule.self:
	case rule.key == hostKey:
		a.each = min(a.each, max(least+rule.maxSkew-pods, 0))
	default:
		a.lower(least + rule.maxSkew - pods)
	}
}
