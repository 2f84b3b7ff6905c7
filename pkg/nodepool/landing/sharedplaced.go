package landing

import (
	"slices"
	"sync"
)

// chain places the groups' pods on a start. Where pods go follows from their counts alone, so that the next plan, for
// which the launches of this one are present pods, finds the same places. A plan asks hundreds of times with counts of
// which most are as before, so the chain remembers the state after each group in the order of placing, and the first
// groups need not be placed again.
type chain struct {
	mu sync.Mutex
	// start is the state that the steps begin from; steps are by position in the order.
	start *Taken
	steps []chainStep
	// placeless is how many of each group's present pods have no place, by position in the order.
	placeless []int64
	// retried are the counts of the last placing in which some pods had no place, and other is the result of another
	// order.
	retried []int64
	other   placed
}

// chainStep is the state after a group's pods, and how many of them had no place.
type chainStep struct {
	pods, missing int64
	after         *Taken
}

// placed is where pods are, and how many of each group had no place, by position in the order.
type placed struct {
	on      *Taken
	missing []int64
}

// newChain places the present pods on a start.
func newChain(c *SharedNodes, start *Taken) *chain {
	m := &chain{start: start, steps: make([]chainStep, len(c.order))}
	m.placeless = m.all(c, c.present).missing
	return m
}

// place places the present pods and the given ones, and returns a state of its own; nil if more pods have no place than
// of the present ones alone.
func (m *chain) place(c *SharedNodes, given []int64) *Taken {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := m.beside(c, given)
	for k, missing := range found.missing {
		if missing > m.placeless[k] {
			return nil
		}
	}
	on := &Taken{}
	on.CopyFrom(found.on)
	return on
}

// beside places the given pods with the present ones.
func (m *chain) beside(c *SharedNodes, given []int64) placed {
	counts := slices.Clone(c.present)
	for _, i := range c.order {
		counts[i] += given[i]
	}
	return m.all(c, counts)
}

// placeless returns how many present and given pods of a group have no place.
func (c *SharedNodes) placeless(i int, given []int64) int64 {
	m := c.last
	m.mu.Lock()
	defer m.mu.Unlock()
	missing := m.beside(c, given).missing
	if k := slices.Index(c.order, i); k >= 0 {
		return missing[k]
	}
	return 0
}

// all places pods in order. If some have no place, it tries another order, and returns what places more.
func (m *chain) all(c *SharedNodes, counts []int64) placed {
	found := m.inOrder(c, counts)
	missing := total(found.missing)
	if missing == 0 {
		return found
	}
	if !slices.Equal(m.retried, counts) {
		m.retried, m.other = slices.Clone(counts), m.missingFirst(c, counts, found.missing)
	}
	if total(m.other.missing) < missing {
		return m.other
	}
	return found
}

// inOrder places pods in the order of the groups.
func (m *chain) inOrder(c *SharedNodes, counts []int64) placed {
	found, same := placed{m.start, make([]int64, len(c.order))}, true
	for k, i := range c.order {
		step := &m.steps[k]
		if same = same && step.after != nil && step.pods == counts[i]; !same {
			step.put(c, i, counts[i], found.on)
		}
		found.on, found.missing[k] = step.after, step.missing
	}
	return found
}

// put places pods of the i-th group on what the step before left.
func (s *chainStep) put(c *SharedNodes, i int, pods int64, before *Taken) {
	s.pods, s.missing, s.after = pods, 0, before
	if pods > 0 {
		s.after = &Taken{}
		s.after.CopyFrom(before)
		s.missing = pods - s.after.Take(c.kinds[i], pods)
	}
}

// missingFirst places pods of the groups of which some are missing before all others. It stops when as many are missing
// again.
func (m *chain) missingFirst(c *SharedNodes, counts, missing []int64) placed {
	found, spare := placed{&Taken{}, make([]int64, len(c.order))}, total(missing)
	found.on.CopyFrom(m.start)
	for _, first := range []bool{true, false} {
		for k, i := range c.order {
			if first == (missing[k] > 0) && spare > 0 {
				found.missing[k] = counts[i] - c.Occupy(found.on, i, counts[i])
				spare -= found.missing[k]
			}
		}
	}
	return found
}

func total(counts []int64) (n int64) {
	for _, each := range counts {
		n += each
	}
	return n
}
