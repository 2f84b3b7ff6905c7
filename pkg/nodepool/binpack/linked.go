package binpack

import "heliostat.dev/heliostat/pkg/nodepool/podfit"

// mostSteps bounds the work for pods whose rules reach beyond a node. It takes an unusual combination of rules to reach
// it; then fewer pods are placed than could be.
const mostSteps = 1 << 10

// addLinked is Add for a kind with rules beyond its own node.
func (s *State) addLinked(pod int, n int64) (placed int64) {
	for range mostSteps {
		if placed >= n {
			break
		}
		levels := s.levels(pod)
		if raised := s.raise(pod, n-placed, levels); raised > 0 {
			placed += raised
			continue
		}
		at, allowed := s.bestLinked(pod, levels)
		if at < 0 {
			break
		}
		placed += s.fill(at, pod, min(n-placed, allowed.all), allowed.each)
	}
	return placed
}

// roomLinked returns how many pods of such a kind addLinked would place.
func (s *State) roomLinked(pod int) int64 {
	if s.domains.rooms[pod] == unknownRoom {
		var trial State
		trial.CopyFrom(s)
		s.domains.rooms[pod] = trial.addLinked(pod, s.rooms[pod].total())
	}
	return s.domains.rooms[pod]
}

// bestLinked returns the stack to place a pod on, and what the rules allow there; -1 if none has room. Among nodes that
// exist, and then among new ones, it prefers the domain with the fewest pods that are to be spread: that lets the
// others take most.
func (s *State) bestLinked(pod int, levels []level) (best int, allowed allowance) {
	best = -1
	for i := range s.bins {
		bin := s.bins[i].bin
		if bin.rooms[pod] == 0 {
			continue
		}
		a := s.allows(pod, i, levels)
		if a.each == 0 || a.all == 0 {
			continue
		}
		if best < 0 || bin.beforeWith(a.pods, s.bins[best].bin, allowed.pods) {
			best, allowed = i, a
		}
	}
	return best, allowed
}

func (b *bin) beforeWith(pods int64, other *bin, others int64) bool {
	switch {
	case b.rank.tier != other.rank.tier:
		return b.rank.tier < other.rank.tier
	case pods != others:
		return pods < others
	}
	return b.before(other)
}

// raise brings the domains of a kind to one level, as high as all of them can get, if spreading over one key is all
// that its rules want. It returns how many pods that took; 0 if pods have to be placed step by step.
func (s *State) raise(pod int, n int64, levels []level) (placed int64) {
	r := &s.packer.kinds[pod].rules
	if len(r.spreads) != 1 || r.spreads[0].key == hostKey || !r.spreads[0].self || r.together != nil ||
		(&rules{aparts: r.aparts}).reachBeyondANode() || levels[0].domains < r.spreads[0].minDomains {
		return 0
	}
	rule := &r.spreads[0]
	rooms := make([]sum, s.packer.cells)
	for i := range s.bins {
		b := s.bins[i].bin
		if c := s.packer.places[b.place].domains[rule.key]; c >= 0 && b.rooms[pod] > 0 {
			rooms[c].add(podfit.CappedProduct(b.rooms[pod], s.bins[i].nodes), 1)
		}
	}
	var cells []int
	for c, exists := range rule.exists {
		if exists || s.isOpened(pod, rule.key, c) {
			cells = append(cells, c)
		}
	}
	target := s.levelWithin(rule, cells, rooms, n)
	for _, c := range cells {
		if want := target - sumOf(s.domains.pods[c], rule.kinds); want > 0 {
			placed += s.addIn(pod, rule.key, c, want)
		}
	}
	return placed
}

// levelWithin returns the highest level to which n pods raise all the cells.
func (s *State) levelWithin(rule *spreadRule, cells []int, rooms []sum, n int64) int64 {
	if len(cells) == 0 {
		return 0
	}
	low, high := int64(0), int64(podfit.Unbounded)
	for _, c := range cells {
		high = min(high, sumOf(s.domains.pods[c], rule.kinds)+rooms[c].total())
	}
	for low < high {
		level, need := (low+high+1)/2, int64(0)
		for _, c := range cells {
			need += max(level-sumOf(s.domains.pods[c], rule.kinds), 0)
		}
		if need <= n {
			low = level
		} else {
			high = level - 1
		}
	}
	return low
}

// addIn places up to n pods in one cell.
func (s *State) addIn(pod, key, c int, n int64) (placed int64) {
	for placed < n {
		at := s.best(pod, func(b *bin) bool { return s.packer.places[b.place].domains[key] == c })
		if at < 0 {
			break
		}
		placed += s.fill(at, pod, n-placed, s.bins[at].bin.rooms[pod])
	}
	return placed
}
