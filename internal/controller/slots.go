package controller

import (
	"sync"
	"time"
)

// burst is how far the cycles of a moment may run ahead of the limit.
const burst = time.Second

// slots hands out slots for cycles that nothing else paces, so that they keep to a number per second: those that events
// start, however many pods come and go, and those before a cluster's turn. It is safe for concurrent use.
type slots struct {
	mu   sync.Mutex // guards next
	next time.Time
}

// Take returns when the next cycle may begin; a time that is not after now means at once.
func (s *slots) Take(now time.Time, perSecond float64) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.turn(now)
	s.next = turn.Add(each(1, perSecond))
	return turn
}

// TakeNow takes a slot and reports true if one is free now.
func (s *slots) TakeNow(now time.Time, perSecond float64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.turn(now)
	if turn.After(now) {
		return false
	}
	s.next = turn.Add(each(1, perSecond))
	return true
}

// turn is the time of the next slot. The caller holds mu.
func (s *slots) turn(now time.Time) time.Time {
	if earliest := now.Add(-burst); s.next.Before(earliest) {
		return earliest
	}
	return s.next
}
