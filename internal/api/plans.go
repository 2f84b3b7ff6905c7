package api

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/access"
)

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
