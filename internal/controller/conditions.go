package controller

import "time"

// repeatAfter is the pause before a condition whose sentence changed is told again.
const repeatAfter = time.Minute

// conditions tells lasting states as Events once, when they begin, and not with every cycle.
type conditions struct {
	emitted map[string]emittedCondition
	raised  map[string]bool
	// since is when a condition began that is reported only once it has lasted; held are those that this cycle found.
	since map[string]time.Time
	held  map[string]bool
}

type emittedCondition struct {
	message string
	at      time.Time
}

// begin starts a cycle's account.
func (c *conditions) begin() { c.raised, c.held = map[string]bool{}, map[string]bool{} }

// raise notes that the condition holds now and reports whether it is news.
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

// lasted notes that the condition holds now and reports whether it has for that long, without a cycle that did not find
// it.
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

// end forgets the conditions that this cycle did not raise, so that they are told when they come back.
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
