package controller

import "time"

// repeatAfter is the pause before a condition whose message changed is emitted again.
const repeatAfter = time.Minute

// conditions emits a lasting condition as an Event once, when it begins, and not in every cycle.
type conditions struct {
	emitted map[string]emittedCondition
	raised  map[string]bool
	// since is when a condition began that must last before it is emitted; held are those found in this cycle.
	since map[string]time.Time
	held  map[string]bool
}

type emittedCondition struct {
	message string
	at      time.Time
}

// begin starts a cycle.
func (c *conditions) begin() { c.raised, c.held = map[string]bool{}, map[string]bool{} }

// raise notes that the condition holds now and reports whether to emit it.
func (c *conditions) raise(now time.Time, key, message string) bool {
	c.raised[key] = true
	known, held := c.emitted[key]
	if held && (known.message == message || now.Sub(known.at) < repeatAfter) {
		return false
	}
	if c.emitted == nil {
		c.emitted = map[string]emittedCondition{}
	}
	c.emitted[key] = emittedCondition{message: message, at: now}
	return true
}

// lasted notes that the condition holds now and reports whether it has held for that long in every cycle.
func (c *conditions) lasted(now time.Time, key string, least time.Duration) bool {
	c.held[key] = true
	begun, known := c.since[key]
	if !known {
		if c.since == nil {
			c.since = map[string]time.Time{}
		}
		begun, c.since[key] = now, now
	}
	return now.Sub(begun) >= least
}

// end forgets the conditions that did not hold in this cycle, so that they are emitted when they come back.
func (c *conditions) end() {
	for key := range c.emitted {
		if !c.raised[key] {
			delete(c.emitted, key)
		}
	}
	for key := range c.since {
		if !c.held[key] {
			delete(c.since, key)
		}
	}
}
