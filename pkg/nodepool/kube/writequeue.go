package kube

import (
	"context"
	"sync"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// queuedWriteTimeout bounds a write that several callers wait for, none of whom can cancel it for the others.
const queuedWriteTimeout = 10 * time.Second

// writesAtOnce bounds concurrent writes of annotations. A RayCluster is expensive to write, because its definition is
// large. While callers wait for a slot their writes merge, whereas more concurrent writes would only delay each other.
// A write waits at most slotTimeout for a slot, so that no RayCluster waits for hanging writes of others.
const (
	writesAtOnce = 8
	slotTimeout  = 500 * time.Millisecond
)

// writeQueue allows one write of a RayCluster's annotations at a time, and writesAtOnce of all. A later write replaces
// the waiting one, as if they had followed each other, and one write serves all callers: callers that write many times
// a second cause no more writes than the API server can process one by one.
type writeQueue struct {
	slots chan struct{}

	mu sync.Mutex
	// Guarded by mu. waiting is the next write of each RayCluster; running has those with a goroutine that writes.
	running map[nodepool.ClusterKey]bool
	waiting map[nodepool.ClusterKey]*queuedWrite
}

// newWriteQueue returns an empty queue.
func newWriteQueue() *writeQueue {
	return &writeQueue{
		slots:   make(chan struct{}, writesAtOnce),
		running: map[nodepool.ClusterKey]bool{},
		waiting: map[nodepool.ClusterKey]*queuedWrite{},
	}
}

// queuedWrite is one write.
type queuedWrite struct {
	ctx         context.Context // of the last caller, for its trace
	annotations map[string]any
	done        chan struct{}
	err         error
}

// Write writes annotations to a RayCluster, or those of a later caller that replace them. All callers that wait get the
// error of the write.
func (t *writeQueue) Write(
	ctx context.Context,
	key nodepool.ClusterKey,
	annotations map[string]any,
	by func(context.Context, map[string]any) error,
) error {
	mine := t.join(ctx, key, annotations, by)
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join adds a write, or replaces the waiting one.
func (t *writeQueue) join(
	ctx context.Context,
	key nodepool.ClusterKey,
	annotations map[string]any,
	by func(context.Context, map[string]any) error,
) *queuedWrite {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next := t.waiting[key]; next != nil {
		next.ctx, next.annotations = ctx, annotations
		return next
	}
	mine := &queuedWrite{ctx: ctx, annotations: annotations, done: make(chan struct{})}
	t.waiting[key] = mine
	if !t.running[key] {
		t.running[key] = true
		go t.run(key, by)
	}
	return mine
}

// run writes until nothing waits, each write once there is a slot.
func (t *writeQueue) run(key nodepool.ClusterKey, by func(context.Context, map[string]any) error) {
	for t.runNext(key, by) {
	}
}

func (t *writeQueue) runNext(key nodepool.ClusterKey, by func(context.Context, map[string]any) error) bool {
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	case <-time.After(slotTimeout):
	}
	now := t.next(key)
	if now == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(now.ctx), queuedWriteTimeout)
	defer cancel()
	now.err = by(ctx, now.annotations)
	close(now.done)
	return true
}

// next takes the waiting write, nil if there is none.
func (t *writeQueue) next(key nodepool.ClusterKey) *queuedWrite {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := t.waiting[key]
	delete(t.waiting, key)
	if next == nil {
		delete(t.running, key)
	}
	return next
}
