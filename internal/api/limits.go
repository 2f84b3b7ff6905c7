package api

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
	"heliostat.dev/heliostat/internal/access"
)

// Limits of a connection. A client that sends more slowly blocks only its own connection.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 60 * time.Second
	// maxHeader is the limit of the header in bytes, the address included. Beyond it, net/http answers 431.
	maxHeader = 16 << 10
	// maxStreams is the number of concurrent calls on one HTTP/2 connection.
	maxStreams = 100
	// streamTimeout is how long the reader of a stream may take for each write.
	streamTimeout = 10 * time.Second
	// kubernetesTimeout is how long a call waits for Kubernetes. It is well below writeTimeout.
	kubernetesTimeout = 10 * time.Second
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

// limiter gives each of many keys a bucket of tokens that fills at a constant rate. It forgets the least recently used
// keys, which fills their buckets.
type limiter struct {
	perSecond rate.Limit
	burst     int

	mu      sync.Mutex // guards taking
	buckets *lru.Cache[string, *rate.Limiter]
}

// newLimiter returns a limiter of perSecond tokens a second, at most burst at once, for at most keys keys.
func newLimiter(perSecond, burst float64, keys int) *limiter {
	buckets, err := lru.New[string, *rate.Limiter](keys)
	if err != nil {
		panic(err) // the number of keys is above 0
	}
	return &limiter{
		perSecond: rate.Limit(perSecond), burst: max(1, int(burst)), buckets: buckets,
	}
}

// take takes a token from key's bucket and returns 0, or takes none and returns how long until there is one.
func (l *limiter) take(key string, now time.Time) time.Duration {
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

// shares counts what each caller uses of something.
type shares struct {
	mu sync.Mutex // guards of
	of map[string]int
}

// take adds one to what a caller uses until release. It returns false if the caller already uses most.
func (s *shares) take(caller string, most int) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[caller] >= most {
		return nil, false
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.of[caller]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.of[caller]--; s.of[caller] == 0 {
			delete(s.of, caller)
		}
	}, true
}

// callerLimits limits the calls of each caller.
type callerLimits struct {
	perSecond float64
	rate      *limiter // nil means no limit
	running   shares
}

// newCallerLimits limits the calls per second; 0 means no limit. The limit on concurrent calls always holds.
func newCallerLimits(perSecond float64) *callerLimits {
	c := &callerLimits{perSecond: perSecond}
	if perSecond > 0 {
		c.rate = newLimiter(perSecond, perSecond*burstSeconds, maxCallers)
	}
	return c
}

// Enter counts a call until leave, or returns an error if the caller has reached a limit.
func (c *callerLimits) Enter(caller string, now time.Time) (leave func(), err error) {
	if c.rate != nil {
		if wait := c.rate.take(caller, now); wait > 0 {
			why := fmt.Sprintf("%q makes more than %g calls per second", shorten(caller), c.perSecond)
			return nil, &access.ThrottledError{After: wait, Why: why}
		}
	}
	leave, ok := c.running.take(caller, maxCalls)
	if !ok {
		why := fmt.Sprintf("%q already has %d concurrent calls", shorten(caller), maxCalls)
		return nil, &access.ThrottledError{After: time.Second, Why: why}
	}
	return leave, nil
}

// Limits on the plans that callers request, so that the control loop keeps its share of the processor: how many run at
// the same time, and how many of one caller run or wait.
const (
	maxPlans         = 2
	maxPlansOfCaller = 8
)

// planTimeout is how long a caller waits for a plan, the time in the queue included. It is well below writeTimeout.
const planTimeout = 10 * time.Second

// planLimits limits the plans that run at the same time.
type planLimits struct {
	// slots has a token for each running plan.
	slots chan struct{}
	calls shares
}

// newPlanLimits allows so many plans at the same time.
func newPlanLimits(slots int) *planLimits { return &planLimits{slots: make(chan struct{}, slots)} }

// enter waits for a slot. The caller must call leave when its plan is complete.
func (p *planLimits) enter(ctx context.Context, caller string) (leave func(), err error) {
	part, ok := p.calls.take(caller, maxPlansOfCaller)
	if !ok {
		why := fmt.Sprintf("%d plans of %q are already running or waiting", maxPlansOfCaller, shorten(caller))
		return nil, &access.ThrottledError{After: planTimeout, Why: why}
	}
	select {
	case p.slots <- struct{}{}:
		return func() {
			<-p.slots
			part()
		}, nil
	case <-ctx.Done():
		part()
		why := fmt.Sprintf("%d plans are running, which is the limit", cap(p.slots))
		return nil, &problem{Kind: kindUnavailable, Detail: why}
	}
}

// runPlan waits for a slot and computes a plan. A plan that takes longer than the caller waits keeps its slot until it
// returns.
func runPlan[T any](ctx context.Context, plans *planLimits, caller string, plan func() T) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	var none T
	leave, err := plans.enter(ctx, caller)
	if err != nil {
		return none, err
	}
	type outcome struct {
		plan T
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if cause := recover(); cause != nil {
				o.err = fmt.Errorf("panic while planning: %v\n%s", cause, debug.Stack())
			}
			leave()
			done <- o
		}()
		o.plan = plan()
	}()
	select {
	case o := <-done:
		return o.plan, o.err
	case <-ctx.Done():
		return none, &problem{
			Kind:   kindTimedOut,
			Detail: fmt.Sprintf("the plan was not complete within %v", planTimeout),
		}
	}
}
