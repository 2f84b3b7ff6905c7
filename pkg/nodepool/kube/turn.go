package kube

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// longPause is the shortest pause after which a cycle waits for a turn. A RayCluster with such a pause is mostly at
	// rest, and a tenth of a second does not matter to it.
	longPause = 500 * time.Millisecond
	// turnsAtOnce is how many cycles after long pauses run at once. On a full machine, a thousand of them that share
	// its cores delay every step of every other cycle.
	turnsAtOnce = 64
	// turnLasts is how long a cycle counts at most. 64 cycles on two cores take less, so one that takes longer waits
	// for a head or the API server. 64 heads that do not answer let 256 other cycles begin per second.
	turnLasts = 250 * time.Millisecond
)

// turn is one worker's place among the cycles after long pauses. The worker alone calls take and leave.
type turn struct {
	turns chan struct{} // has a token for each cycle that counts; callers that wait get one in the order of their calls
	taken atomic.Bool
	over  *time.Timer
}

func newTurn(turns chan struct{}) *turn {
	t := &turn{turns: turns}
	t.over = time.AfterFunc(time.Hour, t.release)
	t.over.Stop()
	return t
}

// take waits for a turn, or until an event wants a cycle at once, which it reports with false.
func (t *turn) take(ctx context.Context, event <-chan struct{}) (quiet bool) {
	select {
	case t.turns <- struct{}{}:
		t.taken.Store(true)
		t.over.Reset(turnLasts)
		return true
	case <-event:
		return false
	case <-ctx.Done():
		return false
	}
}

// leave ends the turn, if there is one.
func (t *turn) leave() {
	t.over.Stop()
	t.release()
}

// release lets another cycle begin, once for each turn.
func (t *turn) release() {
	if t.taken.CompareAndSwap(true, false) {
		<-t.turns
	}
}
