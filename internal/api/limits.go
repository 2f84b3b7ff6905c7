package api

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/access"
)

// Limits of a connection. A client that sends more slowly blocks only its own connection.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 15 * time.Second
	writeTimeout      = 30 * time.Second
	idleTimeout       = 60 * time.Second
	// maxHeader and maxURI are the bytes up to which the server answers with a problem document. maxHeaderRead is the
	// limit of net/http, which closes the connection without one.
	maxHeader     = 16 << 10
	maxURI        = 8 << 10
	maxHeaderRead = 4 * maxHeader
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

// callerLimits limits the calls of each caller.
type callerLimits struct {
	perSecond float64
	rate      *access.Limiter // nil means no limit

	mu      sync.Mutex // guards running
	running map[string]int
}

// newCallerLimits limits the calls per second; 0 means no limit. The limit on concurrent calls always holds.
func newCallerLimits(perSecond float64) *callerLimits {
	c := &callerLimits{perSecond: perSecond, running: map[string]int{}}
	if perSecond > 0 {
		c.rate = access.NewLimiter(perSecond, perSecond*burstSeconds, maxCallers)
	}
	return c
}

// Enter counts a call until leave, or returns an error if the caller has reached a limit.
func (c *callerLimits) Enter(caller string, now time.Time) (leave func(), err error) {
	if c.rate != nil {
		if wait := c.rate.Take(caller, now); wait > 0 {
			why := fmt.Sprintf("%q makes more than %g calls per second", shorten(caller), c.perSecond)
			return nil, &access.ThrottledError{After: wait, Why: why}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[caller] >= maxCalls {
		why := fmt.Sprintf("%q already has %d concurrent calls", shorten(caller), maxCalls)
		return nil, &access.ThrottledError{After: time.Second, Why: why}
	}
	c.running[caller]++
	return func() { c.leave(caller) }, nil
}

// Used returns how much of maxCalls the caller with the most concurrent calls uses, from 0 to 1.
func (c *callerLimits) Used() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	most := 0
	for _, calls := range c.running {
		most = max(most, calls)
	}
	return float64(most) / maxCalls
}

func (c *callerLimits) leave(caller string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[caller]--; c.running[caller] == 0 {
		delete(c.running, caller)
	}
}

// Limits on the bytes of pending answers: the server holds an answer until its caller has read it, and callers may read
// slowly. Answers of up to smallAnswer bytes do not count, because the number of calls is limited too.
const (
	smallAnswer  = 64 << 10
	maxOfCaller  = 16 << 20
	maxOfAll     = 64 << 20
	retryPending = time.Second
)

// pending counts the bytes of the answers that callers have not read yet.
type pending struct {
	// encoding has a token for each answer that is being encoded, which takes memory of its own.
	encoding chan struct{}

	mu       sync.Mutex // guards the fields below
	bytes    int
	byCaller map[string]int
}

func newPending() *pending {
	return &pending{encoding: make(chan struct{}, runtime.GOMAXPROCS(0)), byCaller: map[string]int{}}
}

// hold counts an answer until release, or returns an error if it exceeds a limit. An answer that alone exceeds a limit
// is allowed while no other counts.
func (p *pending) hold(caller string, size int) (release func(), err error) {
	if size <= smallAnswer {
		return func() {}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if own := p.byCaller[caller]; own > 0 && own+size > maxOfCaller {
		why := fmt.Sprintf(
			"%q has %d bytes of other answers to read first, and this answer has %d", shorten(caller), own,
			size,
		)
		return nil, &access.ThrottledError{After: retryPending, Why: why}
	}
	if p.bytes > 0 && p.bytes+size > maxOfAll {
		why := fmt.Sprintf("callers are reading %d bytes of answers, and this answer has %d", p.bytes, size)
		return nil, &problem{Kind: kindUnavailable, Detail: why}
	}
	p.bytes += size
	p.byCaller[caller] += size
	return func() { p.release(caller, size) }, nil
}

// Used returns how much of the bytes for answers that callers have not read yet is in use, from 0 to 1.
func (w *answers) Used() float64 {
	w.pending.mu.Lock()
	defer w.pending.mu.Unlock()
	return float64(w.pending.bytes) / maxOfAll
}

func (p *pending) release(caller string, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes -= size
	if p.byCaller[caller] -= size; p.byCaller[caller] == 0 {
		delete(p.byCaller, caller)
	}
}

// encode encodes an answer as JSON, a few at a time. It ignores the end of the call: a caller whose body came too
// slowly must get its answer too.
func (p *pending) encode(body any) ([]byte, error) {
	p.encoding <- struct{}{}
	defer func() { <-p.encoding }()
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding the answer: %w", err)
	}
	return append(text, '\n'), nil
}

// Limits on the plans that callers request, so that the control loop keeps its share of the processor. Each caller runs
// one plan at a time, and at most maxQueuedPlans of its calls wait for their turn.
const (
	maxPlans       = 2
	maxQueuedPlans = 8
)

// planTimeout is how long a caller waits for a plan, the time in the queue included. It is well below writeTimeout.
const planTimeout = 10 * time.Second

// planLimits limits the plans that run at the same time.
type planLimits struct {
	// slots has a token for each running plan.
	slots chan struct{}

	mu sync.Mutex // guards callers and the calls of each
	// callers have a plan that runs or waits.
	callers map[string]*planQueue
}

// planQueue is the queue of one caller. running has a token while one of its plans runs; calls counts that one and
// those that wait.
type planQueue struct {
	running chan struct{}
	calls   int
}

// newPlanLimits allows so many plans at the same time.
func newPlanLimits(slots int) *planLimits {
	return &planLimits{slots: make(chan struct{}, slots), callers: map[string]*planQueue{}}
}

// Used returns how much of the plans that may run at the same time do so, from 0 to 1.
func (p *planLimits) Used() float64 { return float64(len(p.slots)) / float64(cap(p.slots)) }

// enter waits for a slot. The caller must call leave when its plan is complete.
func (p *planLimits) enter(ctx context.Context, caller string) (leave func(), err error) {
	queue := p.join(caller)
	if queue == nil {
		why := fmt.Sprintf("%d plans of %q are already waiting", maxQueuedPlans, shorten(caller))
		return nil, &access.ThrottledError{After: planTimeout, Why: why}
	}
	if !acquire(ctx, queue.running) {
		p.part(caller, queue)
		why := fmt.Sprintf(
			"another plan of %q is running, and each caller can run one at a time", shorten(caller),
		)
		return nil, &access.ThrottledError{After: time.Second, Why: why}
	}
	if !acquire(ctx, p.slots) {
		<-queue.running
		p.part(caller, queue)
		why := fmt.Sprintf("%d plans are running, which is the limit", cap(p.slots))
		return nil, &problem{Kind: kindUnavailable, Detail: why}
	}
	return func() {
		<-p.slots
		<-queue.running
		p.part(caller, queue)
	}, nil
}

// acquire puts a token into slots, and waits until there is room or ctx ends.
func acquire(ctx context.Context, slots chan<- struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
	}
	select {
	case slots <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// join adds a call to the caller's queue, or returns nil if the queue is full.
func (p *planLimits) join(caller string) *planQueue {
	p.mu.Lock()
	defer p.mu.Unlock()
	queue := p.callers[caller]
	if queue == nil {
		queue = &planQueue{running: make(chan struct{}, 1)}
		p.callers[caller] = queue
	}
	if queue.calls > maxQueuedPlans {
		return nil
	}
	queue.calls++
	return queue
}

// part removes a call from the queue, and the queue with its last call.
func (p *planLimits) part(caller string, queue *planQueue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if queue.calls--; queue.calls == 0 {
		delete(p.callers, caller)
	}
}

// runPlan waits for a slot and computes a plan. When the time is over it closes stop, and the plan keeps its slot until
// it returns. plan reports whether it is complete; an incomplete plan counts as timed out.
func runPlan[T any](
	ctx context.Context, plans *planLimits, caller string, plan func(stop <-chan struct{}) (result T, complete bool),
) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	var none T
	leave, err := plans.enter(ctx, caller)
	if err != nil {
		return none, err
	}
	type outcome struct {
		plan     T
		complete bool
		err      error
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
		o.plan, o.complete = plan(ctx.Done())
	}()
	select {
	case o := <-done:
		if o.complete || o.err != nil {
			return o.plan, o.err
		}
	case <-ctx.Done():
	}
	return none, &problem{
		Kind:   kindTimedOut,
		Detail: fmt.Sprintf("the plan was not complete within %v", planTimeout),
	}
}
