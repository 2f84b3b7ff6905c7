package access

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// digest is the key of an answer: the cache does not keep secrets or long lists of groups.
type digest = [sha256.Size]byte

// cache remembers answers for as long as each of them allows. Equal questions at the same time are asked once. An
// error is returned to everyone who waits for it and is not remembered.
type cache[V any] struct {
	now func() time.Time

	// mu guards the fields below.
	mu      sync.Mutex
	kept    recent[digest, answer[V]]
	waiting map[digest]*question[V]
}

type answer[V any] struct {
	value V
	until time.Time
}

// question is one that is being asked; value and err are valid after done is closed.
type question[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// newCache returns a cache of at most limit answers.
func newCache[V any](limit int, now func() time.Time) *cache[V] {
	return &cache[V]{now: now, kept: newRecent[digest, answer[V]](limit), waiting: map[digest]*question[V]{}}
}

// get returns the answer that is remembered under key, or asks. The question has a timeout of its own: if one caller's
// call ends, the others who wait still get the answer.
func (c *cache[V]) get(
	ctx context.Context, key digest, ask func(context.Context) (V, time.Duration, error),
) (V, error) {
	c.mu.Lock()
	if found, ok := c.kept.get(key); ok && c.now().Before(found.until) {
		c.mu.Unlock()
		return found.value, nil
	}
	q, asked := c.waiting[key]
	if !asked {
		q = &question[V]{done: make(chan struct{})}
		c.waiting[key] = q
		go c.answer(context.WithoutCancel(ctx), key, q, ask)
	}
	c.mu.Unlock()
	select {
	case <-q.done:
		return q.value, q.err
	case <-ctx.Done():
		var none V
		return none, fmt.Errorf("waiting for a review: %w", ctx.Err())
	}
}

// last returns the latest answer under key, even if it has expired, and until when it was valid.
func (c *cache[V]) last(key digest) (value V, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, _ := c.kept.get(key)
	return found.value, found.until
}

// answer asks and wakes everyone who waits. It ends within reviewTimeout, so nothing waits for it when the process
// ends.
func (c *cache[V]) answer(
	ctx context.Context, key digest, q *question[V], ask func(context.Context) (V, time.Duration, error),
) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	var keep time.Duration
	q.value, keep, q.err = ask(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.err == nil {
		c.kept.put(key, answer[V]{q.value, c.now().Add(keep)})
	}
	delete(c.waiting, key)
	close(q.done)
}

// recent is a map of at most limit entries that forgets the least recently used ones, by halves: an entry that is used
// moves to the young half, and when that is full the old half is dropped.
type recent[K comparable, V any] struct {
	half       int
	young, old map[K]V
}

func newRecent[K comparable, V any](limit int) recent[K, V] {
	return recent[K, V]{half: max(1, limit/2), young: map[K]V{}}
}

func (r *recent[K, V]) get(key K) (V, bool) {
	value, ok := r.young[key]
	if ok {
		return value, true
	}
	if value, ok = r.old[key]; ok {
		r.put(key, value)
	}
	return value, ok
}

func (r *recent[K, V]) put(key K, value V) {
	if _, there := r.young[key]; !there && len(r.young) >= r.half {
		r.old, r.young = r.young, make(map[K]V, len(r.young))
	}
	delete(r.old, key)
	r.young[key] = value
}

func (r *recent[K, V]) size() int { return len(r.young) + len(r.old) }

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
