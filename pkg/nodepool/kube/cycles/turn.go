package cycles

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// longPause is the shortest pause after which a cycle waits for a turn: that of a RayCluster at rest, at which
	// nobody waits for tenths of a second.
	longPause = 500 * time.Millisecond
	// turnsAtOnce is how many cycles after long pauses run at once. On a full machine, a thousand of them that share
	// its cores delay every step of every other cycle.
	turnsAtOnce = 64
	// turnLasts is how long a cycle counts. One that takes longer waits for a server, and delays nobody.
	turnLasts = 50 * time.Millisecond
)

// turn is one worker's place among the cycles after long pauses. The worker alone calls take.
type turn struct {
	turns chan struct{} // has a token for each cycle that counts; those who wait are served in the order of their calls
	taken atomic.Bool
	over  *time.Timer
}

func newTurn(turns chan struct{}) *turn {
	t := &turn{turns: turns}
	t.over = time.AfterFunc(time.Hour, t.leave)
	t.over.Stop()
	return t
}

// take waits for a turn, or until an event wants a cycle at once.
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
	if t.taken.CompareAndSwap(true, false) {
		t.over.Stop()
		<-t.turns
	}
}
