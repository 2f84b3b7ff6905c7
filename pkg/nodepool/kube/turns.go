package kube

import (
	"context"
	"sync"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// writePatience ends a write that several callers wait for, of whom none can break it off for the others.
const writePatience = 10 * time.Second

// writesAtOnce bounds the writes of annotations that are under way. A RayCluster is dear to write, for its definition is large: callers who wait for a
// place join in one write, where more writes at once would only delay each other. A place is waited for placePatience at most, so that no RayCluster
// waits for the writes of others that hang.
const (
	writesAtOnce  = 8
	placePatience = 500 * time.Millisecond
)

// turns lets one write of a RayCluster's annotations be under way at a time, and writesAtOnce of all. Of those that come meanwhile each replaces the one
// before, as if they had come one after the other, and the last is written for all: callers who ask many times a second take no more writes than the
// API server can make one after the other.
type turns struct {
	places chan struct{}

	mu sync.Mutex
	// Guarded by mu. waiting is the next write of each RayCluster, running has those for which somebody takes one turn after the other.
	running map[nodepool.ClusterKey]bool
	waiting map[nodepool.ClusterKey]*writeTurn
}

func newTurns() *turns {
	return &turns{places: make(chan struct{}, writesAtOnce), running: map[nodepool.ClusterKey]bool{}, waiting: map[nodepool.ClusterKey]*writeTurn{}}
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
	t.waiting[key] = mine
	if !t.running[key] {
		t.running[key] = true
		go t.run(key, by)
	}
	return mine
}

// run writes one turn after the other, each once there is a place for it, until nobody waits.
func (t *turns) run(key nodepool.ClusterKey, by func(context.Context, map[string]any) error) {
	for t.runNext(key, by) {
	}
}

func (t *turns) runNext(key nodepool.ClusterKey, by func(context.Context, map[string]any) error) bool {
	select {
	case t.places <- struct{}{}:
		defer func() { <-t.places }()
	case <-time.After(placePatience):
	}
	now := t.next(key)
	if now == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(now.ctx), writePatience)
	defer cancel()
	now.err = by(ctx, now.annotations)
	close(now.done)
	return true
}

// next begins the turn that waits, nil where there is none.
func (t *turns) next(key nodepool.ClusterKey) *writeTurn {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := t.waiting[key]
	delete(t.waiting, key)
	if next == nil {
		delete(t.running, key)
	}
	return next
}
