package access

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limiter gives each of many keys a bucket of tokens that fills at a constant rate. It forgets the least recently used
// keys, which fills their buckets.
type Limiter struct {
	perSecond rate.Limit
	burst     int

	// mu guards buckets.
	mu      sync.Mutex
	buckets recent[string, *rate.Limiter]
}

// NewLimiter returns a Limiter of perSecond tokens a second, at most burst at once, for at most keys keys.
func NewLimiter(perSecond, burst float64, keys int) *Limiter {
	return &Limiter{
		perSecond: rate.Limit(perSecond), burst: max(1, int(burst)), buckets: newRecent[string, *rate.Limiter](keys),
	}
}

// Take takes a token from key's bucket and returns 0, or takes none and returns how long until there is one.
func (l *Limiter) Take(key string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, known := l.buckets.get(key)
	if !known {
		bucket = rate.NewLimiter(l.perSecond, l.burst)
		l.buckets.put(key, bucket)
	}
	token := bucket.ReserveN(now, 1)
	wait := token.DelayFrom(now)
	if wait > 0 {
		token.CancelAt(now)
	}
	return wait
}

// Return puts back a token that Take took.
func (l *Limiter) Return(key string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bucket, known := l.buckets.get(key); known {
		bucket.AllowN(now, -1)
	}
}
