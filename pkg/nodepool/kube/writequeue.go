package kube

import (
	"context"
	"sync"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// queuedWriteTimeout ends a write that several callers wait for, of whom none can break it off for the others.
const queuedWriteTimeout = 10 * time.Second

// writesAtOnce bounds the writes of annotations that are under way. A RayCluster is dear to write, for its definition is large: callers who wait for a
// place join in one write, where more writes at once would only delay each other. A place is waited for placePatience at most, so that no RayCluster
// waits for the writes of others that hang.
const (
	writesAtOnce = 8
	slotTimeout  = 500 * time.Millisecond
)

// writeQueue lets one write of a RayCluster's annotations be under way at a time, and writesAtOnce of all. Of those that come meanwhile each replaces the one
// before, as if they had come one after the other, and the last is written for all: callers who ask many times a second take no more writes than the
// API server can make one after the other.
type writeQueue struct {
	slots chan struct{}

	mu sync.Mutex
	// Guarded by mu. waiting is the next write of each RayCluster, running has those for which somebody takes one turn after the other.
	running map[nodepool.ClusterKey]bool
	waiting map[nodepool.ClusterKey]*queuedWrite
}

func newWriteQueue() *writeQueue {
	return &writeQueue{slots: make(chan struct{}, writesAtOnce), running: map[nodepool.ClusterKey]bool{}, waiting: map[nodepool.ClusterKey]*queuedWrite{}}
}

// queuedWrite is one write.
type queuedWrite struct {
	ctx         context.Context // of the last caller, for its trace
	annotations map[string]any
	done        chan struct{}
	err         error
}

// write has annotations written to a RayCluster, or those of a caller who came later and replaces them. An error of the write is told to all who
// wait for it.
func (t *writeQueue) write(ctx context.Context, key nodepool.ClusterKey, annotations map[string]any, by func(context.Context, map[string]any) error) error {
	mine := t.join(ctx, key, annotations, by)
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join takes the next turn, or a place in it.
func (t *writeQueue) join(ctx context.Context, key nodepool.ClusterKey, annotations map[string]any, by func(context.Context, map[string]any) error) *queuedWrite {
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

// run writes one turn after the other, each once there is a place for it, until nobody waits.
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

// next begins the turn that waits, nil where there is none.
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
