package requests

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// fewCalls is how many writes of callers a second do not slow down other writes.
const fewCalls = 20

// writeLocks allows one write of each request at a time. Of two concurrent writes of this process one would get a
// conflict, and an older status could overtake a newer one. It also knows whether callers write much.
type writeLocks struct {
	callLimit flowcontrol.RateLimiter // of callers' writes

	mu sync.Mutex
	// Guarded by mu. writing has a channel for each request that is being written, closed when the write ends; callers
	// write much until busyUntil.
	writing   map[requestKey]chan struct{}
	busyUntil time.Time
}

func newWriteLocks() *writeLocks {
	return &writeLocks{
		callLimit: flowcontrol.NewTokenBucketRateLimiter(fewCalls, fewCalls),
		writing:   map[requestKey]chan struct{}{},
	}
}

// call begins a caller's write once no other write of the request is in progress; leave ends it. It returns an error of
// ctx alone.
func (t *writeLocks) call(ctx context.Context, key requestKey) (leave func(), err error) {
	t.count()
	for {
		leave, others := t.begin(key)
		if leave != nil {
			return leave, nil
		}
		select {
		case <-others:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// begin begins a write, or returns a channel that is closed when the write in progress ends.
func (t *writeLocks) begin(key requestKey) (leave func(), others <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if there := t.writing[key]; there != nil {
		return nil, there
	}
	mine := make(chan struct{})
	t.writing[key] = mine
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.writing, key)
		close(mine)
	}, nil
}

func (t *writeLocks) count() {
	if t.callLimit.TryAccept() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busyUntil = time.Now().Add(time.Second)
}

// busy reports whether callers recently wrote more than fewCalls a second.
func (t *writeLocks) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Now().Before(t.busyUntil)
}
