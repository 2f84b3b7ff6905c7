package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
)

// digest is the key of an answer: the cache does not keep secrets or long lists of groups.
type digest = [sha256.Size]byte

// cache remembers answers for as long as each of them allows; it forgets the least recently used ones first. Equal
// questions at the same time are asked once. An error is returned to everyone who waits for it and is not remembered.
type cache[V any] struct {
	now    func() time.Time
	kept   *lru.Cache[digest, answer[V]]
	asking singleflight.Group
}

type answer[V any] struct {
	value V
	until time.Time
}

// newCache returns a cache of at most limit answers, which is above 0.
func newCache[V any](limit int, now func() time.Time) *cache[V] {
	return &cache[V]{now: now, kept: newLRU[digest, answer[V]](limit)}
}

// newLRU returns a map of at most limit entries, which is above 0, that forgets the least recently used ones.
func newLRU[K comparable, V any](limit int) *lru.Cache[K, V] {
	kept, err := lru.New[K, V](limit)
	if err != nil {
		panic(err)
	}
	return kept
}

// get returns the answer that is remembered under key, or asks. The question has a timeout of its own, so nothing waits
// for it when the process ends: if one caller's call ends, the others who wait still get the answer.
func (c *cache[V]) get(
	ctx context.Context, key digest, ask func(context.Context) (V, time.Duration, error),
) (none V, err error) {
	if value, until := c.last(key); c.now().Before(until) {
		return value, nil
	}
	asked := c.asking.DoChan(string(key[:]), func() (any, error) {
		if value, until := c.last(key); c.now().Before(until) {
			return value, nil // it came in the meantime
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewTimeout)
		defer cancel()
		value, keep, err := ask(ctx)
		if err == nil {
			c.kept.Add(key, answer[V]{value, c.now().Add(keep)})
		}
		return value, err
	})
	select {
	case result := <-asked:
		return result.Val.(V), result.Err
	case <-ctx.Done():
		return none, fmt.Errorf("waiting for a review: %w", ctx.Err())
	}
}

// last returns the latest answer under key, even if it has expired, and until when it was valid.
func (c *cache[V]) last(key digest) (value V, until time.Time) {
	found, _ := c.kept.Get(key)
	return found.value, found.until
}

// Limiter gives each of many keys a bucket of tokens that fills at a constant rate. It forgets the least recently used
// keys, which fills their buckets.
type Limiter struct {
	perSecond rate.Limit
	burst     int

	mu      sync.Mutex // guards taking and putting back
	buckets *lru.Cache[string, *rate.Limiter]
}

// NewLimiter returns a Limiter of perSecond tokens a second, at most burst at once, for at most keys keys.
func NewLimiter(perSecond, burst float64, keys int) *Limiter {
	return &Limiter{
		perSecond: rate.Limit(perSecond), burst: max(1, int(burst)), buckets: newLRU[string, *rate.Limiter](keys),
	}
}

// Take takes a token from key's bucket and returns 0, or takes none and returns how long until there is one.
func (l *Limiter) Take(key string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, known := l.buckets.Get(key)
	if !known {
		bucket = rate.NewLimiter(l.perSecond, l.burst)
		l.buckets.Add(key, bucket)
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
	if bucket, known := l.buckets.Get(key); known {
		bucket.AllowN(now, -1)
	}
}
