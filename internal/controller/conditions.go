package controller

import (
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/addon"
)

// repeatAfter is the pause before a condition whose message changed is emitted again.
const repeatAfter = time.Minute

// sooner is by how much a deadline must be sooner than the one that was emitted to be news.
const sooner = 10 * time.Second

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
	// until is the deadline that the message names; zero if it names none.
	until time.Time
}

// Start starts a cycle.
func (c *conditions) Start() { c.raised, c.held = map[string]bool{}, map[string]bool{} }

// Begins notes that a condition holds now and reports whether to emit its Event. A deadline that appears, or that is
// sooner by sooner or more, is emitted without a pause.
func (c *conditions) Begins(now time.Time, e addon.Event) bool {
	return c.begins(now, conditionKey(e), e)
}

func (c *conditions) begins(now time.Time, key string, e addon.Event) bool {
	c.raised[key] = true
	known, held := c.emitted[key]
	urgent := !e.Until.IsZero() && (known.until.IsZero() || known.until.Sub(e.Until) >= sooner)
	if held && !urgent && (known.message == e.Message || now.Sub(known.at) < repeatAfter) {
		return false
	}
	if c.emitted == nil {
		c.emitted = map[string]emittedCondition{}
	}
	c.emitted[key] = emittedCondition{message: e.Message, at: now, until: e.Until}
	return true
}

// Lasted notes that the condition holds now and reports whether it has held for that long in every cycle.
func (c *conditions) Lasted(now time.Time, key string, least time.Duration) bool {
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

// End forgets the conditions that did not hold in this cycle, so that they are emitted when they come back.
func (c *conditions) End() {
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

// conditionKey identifies a lasting condition: the reason with the subject of the message, so that two groups do not
// hide each other.
func conditionKey(e addon.Event) string {
	subject, _, _ := strings.Cut(e.Message, ":")
	return e.Reason + "/" + subject
}
