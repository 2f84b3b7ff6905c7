package limits

import (
	"fmt"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api/problem"
)

// DefaultRequestsPerSecond is the default number of calls per second of one caller.
const DefaultRequestsPerSecond = 500

// Limits of one caller.
const (
	// MaxCalls is the number of concurrent calls, streams and long polls included.
	MaxCalls = 200
	// burstSeconds is how many seconds' worth of calls a caller may make at once after a pause.
	burstSeconds = 2
	// maxCallers is how many callers the rate limiter remembers.
	maxCallers = 10_000
)

// Callers limits the calls of each caller.
type Callers struct {
	perSecond float64
	rate      *access.Limiter // nil means no limit

	mu      sync.Mutex // guards running
	running map[string]int
}

// NewCallers limits the calls per second; 0 means no limit. The limit on concurrent calls always holds.
func NewCallers(perSecond float64) *Callers {
	c := &Callers{perSecond: perSecond, running: map[string]int{}}
	if perSecond > 0 {
		c.rate = access.NewLimiter(perSecond, perSecond*burstSeconds, maxCallers)
	}
	return c
}

// Enter counts a call until leave, or returns an error if the caller has reached a limit.
func (c *Callers) Enter(caller string, now time.Time) (leave func(), err error) {
	if c.rate != nil {
		if wait := c.rate.Take(caller, now); wait > 0 {
			why := fmt.Sprintf("%q makes more than %g calls per second", problem.Shorten(caller), c.perSecond)
			return nil, &access.ThrottledError{After: wait, Why: why}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[caller] >= MaxCalls {
		why := fmt.Sprintf("%q already has %d concurrent calls", problem.Shorten(caller), MaxCalls)
		return nil, &access.ThrottledError{After: time.Second, Why: why}
	}
	c.running[caller]++
	return func() { c.leave(caller) }, nil
}

// Used returns how much of MaxCalls the caller with the most concurrent calls uses, from 0 to 1.
func (c *Callers) Used() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := 0
	for _, calls := range c.running {
		most = max(most, calls)
	}
	return float64(most) / MaxCalls
}

func (c *Callers) leave(caller string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[caller]--; c.running[caller] == 0 {
		delete(c.running, caller)
	}
}
