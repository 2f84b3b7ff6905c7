package kube

import (
	"context"
	"sync"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// writePatience ends a write that several callers wait for, of whom none can break it off for the others.
const writePatience = 10 * time.Second

// turns lets one write of a RayCluster's annotations be under way at a time. Of those that come meanwhile each replaces the one before, as if
// they had come one after the other, and the last is written for all: callers who ask many times a second take no more writes than the API
// server can make one after the other.
type turns struct {
	mu sync.Mutex
	// Guarded by mu. running has those who are writing, waiting the next of each RayCluster.
	running map[nodepool.ClusterKey]*writeTurn
	waiting map[nodepool.ClusterKey]*writeTurn
}

// writeTurn is one write.
type writeTurn struct {
	ctx         context.Context // of the last caller, for its trace
	annotations map[string]any
	done        chan struct{}
	err         error
}

// write has annotations written to a RayCluster, or those of a caller who came later and replaces them. An error of the write is told to all who
// wait for it.
func (t *turns) write(ctx context.Context, key nodepool.ClusterKey, annotations map[string]any, by func(context.Context, map[string]any) error) error {
	mine := t.join(ctx, key, annotations, by)
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// join takes the next turn, or a place in it.
func (t *turns) join(ctx context.Context, key nodepool.ClusterKey, annotations map[string]any, by func(context.Context, map[string]any) error) *writeTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if next := t.waiting[key]; next != nil {
		next.ctx, next.annotations = ctx, annotations
		return next
	}
	mine := &writeTurn{ctx: ctx, annotations: annotations, done: make(chan struct{})}
	if t.running == nil {
		t.running, t.waiting = map[nodepool.ClusterKey]*writeTurn{}, map[nodepool.ClusterKey]*writeTurn{}
	}
	if t.running[key] != nil {
		t.waiting[key] = mine
		return mine
	}
	t.running[key] = mine
	go t.run(key, mine, by)
	return mine
}

// run writes one turn after the other, until nobody waits.
func (t *turns) run(key nodepool.ClusterKey, now *writeTurn, by func(context.Context, map[string]any) error) {
	for now != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(now.ctx), writePatience)
		now.err = by(ctx, now.annotations)
		cancel()
		close(now.done)
		now = t.next(key)
	}
}

// next begins the turn that waits, nil where there is none.
func (t *turns) next(key nodepool.ClusterKey) *writeTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := t.waiting[key]
	delete(t.waiting, key)
	if next == nil {
		delete(t.running, key)
		return nil
	}
	t.running[key] = next
	return next
}
