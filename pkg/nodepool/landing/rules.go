package landing

import "slices"

// rules bound how many pods of a kind may be on one node beside others: required anti-affinity, ports of the node and
// topology spread, as far as each node is a domain of its own (docs/reference/facts.md#rules-between-pods). Other kinds
// are numbers.
type rules struct {
	// apart are the kinds that must not be on the same node, in both directions.
	apart   []int
	spreads []spreadRule
}

// spreadRule bounds how many pods of the kinds a node may have more than the one with the fewest. self: the pods count
// themselves.
type spreadRule struct {
	maxSkew, minDomains int64
	kinds               []int
	self                bool
}

// bind turns the constraints of pods into rules.
func (p *Packer) bind(pods []Pod, names map[string]int) {
	for i := range pods {
		for _, other := range numbers(pods[i].Apart, names) {
			p.setApart(i, other)
			p.setApart(other, i) // the scheduler also checks the anti-affinity of the pods that are there
		}
		for _, s := range pods[i].Spread {
			kinds := numbers(s.Pods, names)
			p.kinds[i].rules.spreads = append(p.kinds[i].rules.spreads,
				spreadRule{max(s.MaxSkew, 1), s.MinDomains, kinds, slices.Contains(kinds, i)})
		}
		p.ruled = p.ruled || len(pods[i].Apart)+len(pods[i].Spread) > 0
	}
}

func (p *Packer) setApart(kind, other int) {
	if r := &p.kinds[kind].rules; !slices.Contains(r.apart, other) {
		r.apart = append(r.apart, other)
	}
}

func numbers(list []string, names map[string]int) []int {
	var found []int
	for _, name := range list {
		if n, known := names[name]; known && !slices.Contains(found, n) {
			found = append(found, n)
		}
	}
	slices.Sort(found)
	return found
}

// onNode returns how many of room pods may be on the node by what it holds.
func (r *rules) onNode(own int, holds []int64, room int64) int64 {
	for _, kind := range r.apart {
		switch {
		case kind == own:
			room = min(room, max(1-holds[own], 0))
		case holds[kind] > 0:
			return 0
		}
	}
	return room
}

// counts reports whether the nodes are domains for the spread of a kind.
func (s *site) counts(kind int) bool { return s.accepts[kind] || s.counted != nil && s.counted[kind] }

// fewest returns for each spread rule of a kind how many pods the node with the fewest has. New nodes count once pods
// have been placed on them.
func (s *Taken) fewest(kind int) []int64 {
	spreads := s.packer.kinds[kind].rules.spreads
	list := make([]int64, len(spreads))
	for i := range spreads {
		nodes, least := int64(0), int64(unknownAmount)
		for _, stack := range s.bins {
			site := &s.packer.places[stack.place]
			if site.counts(kind) && !site.anySize && (!site.isNew || stack.bin.opened) {
				nodes, least = nodes+stack.nodes, min(least, sumOf(stack.bin.holds, spreads[i].kinds))
			}
		}
		if list[i] = least; nodes < spreads[i].minDomains {
			list[i] = 0
		}
	}
	return list
}

func sumOf(counts []int64, kinds []int) (n int64) {
	for _, k := range kinds {
		n += counts[k]
	}
	return n
}

// spread returns how many of room pods of a kind may be placed on a node now.
func (r *rules) spread(b *bin, fewest []int64, room int64) int64 {
	for i := range r.spreads {
		rule := &r.spreads[i]
		if fewest[i] == unknownAmount {
			continue
		}
		switch most := fewest[i] + rule.maxSkew - sumOf(b.holds, rule.kinds); {
		case rule.self:
			room = min(room, max(most, 0))
		case most < 0:
			return 0
		}
	}
	return room
}

// mostSteps bounds the work for pods that are spread. With more, fewer pods are placed than could be.
const mostSteps = 1 << 10

// addSpread is Take for a careful kind: what is placed on one node changes how many pods others may have.
func (s *Taken) addSpread(pod int, n int64) (placed int64) {
	r := &s.packer.kinds[pod].rules
	for range mostSteps {
		fewest := s.fewest(pod)
		each := func(b *bin) int64 {
			room := s.ofAmong(b, pod, b.rooms[pod])
			if s.packer.places[b.place].anySize {
				return room
			}
			return r.spread(b, fewest, room)
		}
		at := s.best(pod, func(b *bin) bool { return each(b) > 0 })
		if at < 0 || placed >= n {
			break
		}
		b := s.bins[at].bin
		placed += s.fill(at, pod, s.ofAmong(b, pod, n-placed), each(b))
	}
	return placed
}
