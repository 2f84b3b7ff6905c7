package api

import (
	"context"
	"fmt"
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

// callerLimits limits the calls of each caller: those per second, and those at the same time. It forgets the least
// recently seen callers.
type callerLimits struct {
	perSecond float64 // 0 means no limit

	mu      sync.Mutex // guards callers and all in it
	callers *lru.Cache[string, *callerUse]
}

type callerUse struct {
	rate    *rate.Limiter
	running int
}

// newCallerLimits limits the calls per second; 0 means no limit. The limit on concurrent calls always holds.
func newCallerLimits(perSecond float64) *callerLimits {
	callers, err := lru.New[string, *callerUse](maxCallers)
	if err != nil {
		panic(err) // the number of callers is above 0
	}
	return &callerLimits{perSecond: perSecond, callers: callers}
}

// Enter counts a call until leave, or returns an error if the caller has reached a limit.
func (l *callerLimits) Enter(caller string, now time.Time) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	use, known := l.callers.Get(caller)
	if !known {
		use = &callerUse{rate: rate.NewLimiter(rate.Limit(l.perSecond), max(1, int(l.perSecond*burstSeconds)))}
		l.callers.Add(caller, use)
	}
	if l.perSecond > 0 {
		token := use.rate.ReserveN(now, 1)
		if wait := token.DelayFrom(now); wait > 0 {
			token.CancelAt(now)
			why := fmt.Sprintf("%q makes more than %g calls per second", shorten(caller), l.perSecond)
			return nil, &access.ThrottledError{After: wait, Why: why}
		}
	}
	if use.running >= maxCalls {
		why := fmt.Sprintf("%q already has %d concurrent calls", shorten(caller), maxCalls)
		return nil, &access.ThrottledError{After: time.Second, Why: why}
	}
	use.running++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		use.running--
	}, nil
}

const (
	// maxPlans is how many plans that callers request run at the same time, so that the control loop keeps its share of
	// the processor.
	maxPlans = 2
	// planTimeout is how long a caller waits for its turn. It is well below writeTimeout.
	planTimeout = 10 * time.Second
)

// enterPlan waits for the turn of a plan, which ends with leave.
func (s *server) enterPlan(ctx context.Context) (leave func(), err error) {
	select {
	case s.plans <- struct{}{}:
		return func() { <-s.plans }, nil
	case <-ctx.Done():
	case <-time.After(planTimeout):
	}
	why := fmt.Sprintf("%d plans are running, which is the limit", maxPlans)
	return nil, &problem{Kind: kindUnavailable, Detail: why}
}
