package api

import (
	"fmt"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/access"
)

// DefaultRequestsPerSecond is the default number of calls per second of one caller.
const DefaultRequestsPerSecond = 500

// Limits of one caller.
const (
	// maxCalls is the number of concurrent calls, streams and long polls included.
	maxCalls = 200
	// burstSeconds is how many seconds' worth of calls a caller may make at once after a pause.
	burstSeconds = 2
	// maxCallers is how many callers the rate limiter remembers.
	maxCallers = 10_000
)

// callerLimits limits the calls of each caller.
type callerLimits struct {
	perSecond float64
	rate      *access.Limiter // nil means no limit

	mu      sync.Mutex // guards running
	running map[string]int
}

// newCallerLimits limits the calls per second; 0 means no limit. The limit on concurrent calls always holds.
func newCallerLimits(perSecond float64) *callerLimits {
	c := &callerLimits{perSecond: perSecond, running: map[string]int{}}
	if perSecond > 0 {
		c.rate = access.NewLimiter(perSecond, perSecond*burstSeconds, maxCallers)
	}
	return c
}

// Enter counts a call until leave, or returns an error if the caller has reached a limit.
func (c *callerLimits) Enter(caller string, now time.Time) (leave func(), err error) {
	if c.rate != nil {
		if wait := c.rate.Take(caller, now); wait > 0 {
			why := fmt.Sprintf("%q makes more than %g calls per second", shorten(caller), c.perSecond)
			return nil, &access.ThrottledError{After: wait, Why: why}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[caller] >= maxCalls {
		why := fmt.Sprintf("%q already has %d concurrent calls", shorten(caller), maxCalls)
		return nil, &access.ThrottledError{After: time.Second, Why: why}
	}
	c.running[caller]++
	return func() { c.leave(caller) }, nil
}

// Used returns how much of maxCalls the caller with the most concurrent calls uses, from 0 to 1.
func (c *callerLimits) Used() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := 0
	for _, calls := range c.running {
		most = max(most, calls)
	}
	return float64(most) / maxCalls
}

func (c *callerLimits) leave(caller string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[caller]--; c.running[caller] == 0 {
		delete(c.running, caller)
	}
}
