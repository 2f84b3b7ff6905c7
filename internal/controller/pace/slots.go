package pace

import (
	"sync"
	"time"
)

// burst is how far the readings of a moment may run ahead of the limit.
const burst = time.Second

// Slots hands out slots for reading a head, so that cycles started by events keep to the readings per second too,
// however many pods come and go. It is safe for concurrent use.
type Slots struct {
	mu   sync.Mutex // guards next
	next time.Time
}

// Take returns when the next reading may begin; a time that is not after now means at once.
func (s *Slots) Take(now time.Time, perSecond float64) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := now.Add(-burst)
	if s.next.After(turn) {
		turn = s.next
	}
	s.next = turn.Add(time.Duration(float64(time.Second) / perSecond))
	return turn
}
