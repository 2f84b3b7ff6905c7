package forecast

import "time"

// Series is a line in which each slot can be looked up. It does not change.
type Series struct {
	first   int64
	workers []int32 // unknown where nobody has seen the RayCluster
}

// Series returns the slots of the line, at most those of Span.
func (l *Line) Series() Series {
	if l.empty() {
		return Series{}
	}
	s := Series{first: max(l.first, l.to-spanSlots)}
	s.workers = make([]int32, l.to-s.first)
	for r := range l.runs() {
		for at := max(r.from, s.first); at < r.to; at++ {
			s.workers[at-s.first] = int32(r.workers)
		}
	}
	return s
}

// SeriesOf returns a series whose first slot is that of a moment. A negative number is a slot that is not known.
func SeriesOf(first time.Time, workers []int32) Series { return Series{slotOf(first), workers} }

// Len returns how many slots there are.
func (s Series) Len() int { return len(s.workers) }

// Start returns when a slot begins; the first is 0.
func (s Series) Start(i int) time.Time { return slotStart(s.first + int64(i)) }

// most returns the most workers in some slots, and in how many of them that is known.
func (s Series) most(from, to int64) (workers, known int) {
	for at := max(from, s.first); at < min(to, s.first+int64(len(s.workers))); at++ {
		if w := s.workers[at-s.first]; w >= 0 {
			workers, known = max(workers, int(w)), known+1
		}
	}
	return workers, known
}
