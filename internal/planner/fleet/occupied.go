package fleet

import (
	"slices"
	"sync"

	"heliostat.dev/heliostat/pkg/nodepool/binpack"
)

// chain remembers where given pods were placed last, after each group in the order of placing. A plan asks hundreds of
// times with counts of which most are as before, so the first groups need not be placed again.
type chain struct {
	mu sync.Mutex
	// start is the state that the steps begin from; steps are by position in the order.
	start *binpack.State
	steps []chainStep
	// given are the counts of the last placing in which some pods had no place, and other is where another order
	// placed them; nil if it did not.
	given []int64
	other *binpack.State
}

// chainStep is the state after a group's pods, and how many of them had no place.
type chainStep struct {
	given, missing int64
	after          *binpack.State
}

// place places given pods, and returns a state of its own; nil if not all have a place.
func (m *chain) place(c *Ceilings, given []int64) *binpack.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.start != c.start || len(m.steps) != len(c.order) {
		m.start, m.steps, m.given = c.start, make([]chainStep, len(c.order)), nil
	}
	last, failed := m.inOrder(c, given)
	if len(failed) > 0 {
		if m.given == nil || !slices.Equal(m.given, given) {
			m.given, m.other = slices.Clone(given), c.placeFirst(failed, given)
		}
		last = m.other
	}
	if last == nil {
		return nil
	}
	on := &binpack.State{}
	on.CopyFrom(last)
	return on
}

// inOrder returns the state after the last step, and the groups of which some pods have no place.
func (m *chain) inOrder(c *Ceilings, given []int64) (last *binpack.State, failed []int) {
	last, same := c.start, true
	for k, i := range c.order {
		step := &m.steps[k]
		if same = same && step.after != nil && step.given == given[i]; !same {
			step.put(c, i, given[i], last)
		}
		if last = step.after; step.missing > 0 {
			failed = append(failed, i)
		}
	}
	return last, failed
}

// put places pods of the i-th group on what the step before left.
func (s *chainStep) put(c *Ceilings, i int, pods int64, before *binpack.State) {
	s.given, s.missing, s.after = pods, 0, before
	if pods > 0 {
		s.after = &binpack.State{}
		s.after.CopyFrom(before)
		s.missing = pods - s.after.Add(c.kinds[i], pods)
	}
}

// placeFirst places the given pods of some groups before all others; nil if not all pods have a place.
func (c *Ceilings) placeFirst(first []int, given []int64) *binpack.State {
	on := &binpack.State{}
	on.CopyFrom(c.start)
	others := slices.DeleteFunc(slices.Clone(c.order), func(i int) bool { return slices.Contains(first, i) })
	for _, i := range slices.Concat(first, others) {
		if c.Occupy(on, i, given[i]) < given[i] {
			return nil
		}
	}
	return on
}
