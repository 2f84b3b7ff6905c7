package httpapi

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/access"
)

// plansAtOnce bounds the plans that callers have made at the same time, so that the loop keeps its share of the processor. Of one caller it is
// one; at most plansInLine of his calls wait for it.
const (
	plansAtOnce = 2
	plansInLine = 8
)

// planTimeout is how long a caller waits for a plan, its turn included. It ends well before writeTimeout.
const planTimeout = 10 * time.Second

// planRoom bounds the plans that are being made for callers.
type planRoom struct {
	// places has a token for each plan that is being made.
	places chan struct{}

	mu sync.Mutex // guards turns
	// turns are the callers that have a plan made or wait for one.
	turns map[string]*planTurn
}

// planTurn is one caller's. busy has a token while a plan is made for him; calls counts those that are in the room.
type planTurn struct {
	busy  chan struct{}
	calls int
}

func newPlanRoom(places int) *planRoom {
	return &planRoom{places: make(chan struct{}, places), turns: map[string]*planTurn{}}
}

// enter waits until it is this call's turn. leave is to be called when its plan is made.
func (r *planRoom) enter(ctx context.Context, caller string) (leave func(), err error) {
	turn := r.join(caller)
	if turn == nil {
		return nil, &access.ThrottledError{After: planTimeout, Why: fmt.Sprintf("%d plans of %q wait to be made", plansInLine, shorten(caller))}
	}
	if !take(ctx, turn.busy) {
		r.part(caller, turn)
		return nil, &access.ThrottledError{After: time.Second, Why: fmt.Sprintf("another plan is being made for %q, and there may be one at a time", shorten(caller))}
	}
	if !take(ctx, r.places) {
		<-turn.busy
		r.part(caller, turn)
		return nil, &problem{kind: unavailable, detail: fmt.Sprintf("%d plans are being made, and there may be no more at once", cap(r.places))}
	}
	return func() {
		<-r.places
		<-turn.busy
		r.part(caller, turn)
	}, nil
}

// take puts a token in when there is room for it, and waits for that until ctx ends.
func take(ctx context.Context, slots chan<- struct{}) bool {
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

// join counts a call; nil says that there are too many of this caller.
func (r *planRoom) join(caller string) *planTurn {
	r.mu.Lock()
	defer r.mu.Unlock()
	turn := r.turns[caller]
	if turn == nil {
		turn = &planTurn{busy: make(chan struct{}, 1)}
		r.turns[caller] = turn
	}
	if turn.calls > plansInLine {
		return nil
	}
	turn.calls++
	return turn
}

// part forgets a caller with the last of his calls.
func (r *planRoom) part(caller string, turn *planTurn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if turn.calls--; turn.calls == 0 {
		delete(r.turns, caller)
	}
}

// inTime makes a plan when it is this caller's turn. What is made can stop when stop is closed, since nobody waits for it then; until it
// has, it keeps its place. plan reports whether it was made: one that broke off is no plan, and the call is out of time.
func inTime[T any](ctx context.Context, room *planRoom, caller string, plan func(stop <-chan struct{}) (T, bool)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	var none T
	leave, err := room.enter(ctx, caller)
	if err != nil {
		return none, err
	}
	type outcome struct {
		plan T
		made bool
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
		o.plan, o.made = plan(ctx.Done())
	}()
	select {
	case o := <-done:
		if o.made || o.err != nil {
			return o.plan, o.err
		}
	case <-ctx.Done():
	}
	return none, &problem{kind: timedOut, detail: fmt.Sprintf("the plan was not made within %v", planTimeout)}
}
