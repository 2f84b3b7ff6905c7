package access

import (
	"sync"
	"time"
)

// Limiter gives each of many keys a bucket of tokens that fills at a constant rate. It forgets the least recently used
// keys, which fills their buckets.
type Limiter struct {
	perSecond, burst float64

	// mu guards buckets.
	mu      sync.Mutex
	buckets recent[string, bucket]
}

// bucket had that many tokens at that time.
type bucket struct {
	tokens float64
	at     time.Time
}

// NewLimiter returns a Limiter of perSecond tokens a second, at most burst at once, for at most keys keys.
func NewLimiter(perSecond, burst float64, keys int) *Limiter {
	return &Limiter{perSecond: perSecond, burst: max(1, burst), buckets: newRecent[string, bucket](keys)}
}

// Take takes a token from key's bucket and returns 0, or takes none and returns how long until there is one.
func (l *Limiter) Take(key string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.filled(key, now)
	var wait time.Duration
	if b.tokens >= 1 {
		b.tokens--
	} else {
		wait = max(1, time.Duration((1-b.tokens)/l.perSecond*float64(time.Second)))
	}
	l.buckets.put(key, b)
	return wait
}

// Return puts back a token that Take took.
func (l *Limiter) Return(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := l.buckets.get(key); ok {
		b.tokens = min(l.burst, b.tokens+1)
		l.buckets.put(key, b)
	}
}

// filled returns key's bucket as it is now. A clock that was set back removes no tokens.
func (l *Limiter) filled(key string, now time.Time) bucket {
	b, ok := l.buckets.get(key)
	if !ok {
		return bucket{tokens: l.burst, at: now}
	}
	b.tokens = min(l.burst, b.tokens+max(0, now.Sub(b.at).Seconds())*l.perSecond)
	b.at = now
	return b
}
