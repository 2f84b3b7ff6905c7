package requests

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
)

// writeLocks lets one write of each request be under way at a time: of two of this process that meet at the API server one would be refused for the
// other, and an older status could overtake a newer one. It also knows whether callers write much.
type writeLocks struct {
	callLimit flowcontrol.RateLimiter // of callers' writes

	mu sync.Mutex
	// Guarded by mu. writing has a channel for each request that is written to, closed when it is no more; callers write much until muchUntil.
	writing   map[requestKey]chan struct{}
	busyUntil time.Time
}

func newWriteLocks() *writeLocks {
	return &writeLocks{callLimit: flowcontrol.NewTokenBucketRateLimiter(fewCalls, fewCalls), writing: map[requestKey]chan struct{}{}}
}

// call begins a write that a caller waits for, once nobody else writes to the request; leave ends it. An error is that of ctx.
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

// begin begins a write, or returns what is closed when the one is over that is under way.
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

// busy reports whether callers wrote more than fewCalls a second of late.
func (t *writeLocks) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Now().Before(t.busyUntil)
}
