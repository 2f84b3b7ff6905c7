package addon

import "time"

// LongestPause bounds the pause after failures that nothing else bounds.
const LongestPause = 30 * time.Second

// firstPause is the pause after the first failure; it doubles with each further one.
const firstPause = 500 * time.Millisecond

// Pause is the pause after failures. Its zero value has seen none; assign it after a success.
type Pause struct {
	failures int
	retryAt  time.Time
}

// Fail notes a failure, and begins a pause of at most LongestPause.
func (p *Pause) Fail(now time.Time) { p.FailWithin(now, LongestPause) }

// FailWithin notes a failure, and begins a pause of at most longest.
func (p *Pause) FailWithin(now time.Time, longest time.Duration) {
	p.retryAt = now.Add(min(firstPause<<min(p.failures, 10), longest))
	p.failures++
}

// Resting reports whether it is too early for the next try.
func (p *Pause) Resting(now time.Time) bool { return now.Before(p.retryAt) }

// Failures returns how many failures there were since the last success.
func (p *Pause) Failures() int { return p.failures }
