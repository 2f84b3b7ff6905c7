package controller

import (
	"context"
	"sync"
	"time"
)

// entries bounds how many RayClusters connect to their heads at once. At the start of a large fleet, all would connect
// together, the process would have no CPU time for most of them, and their calls would time out. It is safe for
// concurrent use.
type entries struct{ places chan struct{} }

const (
	// entering is how many connect at once. With heads that answer in 10 ms, that is 3,200 per second.
	entering = 32
	// longestEntry is how long one may keep the others waiting, so that heads that do not answer do not block the
	// others: at least 128 connect per second.
	longestEntry = 250 * time.Millisecond
)

// newEntries returns entries that are free.
func newEntries() *entries { return &entries{make(chan struct{}, entering)} }

// Enter waits for a place, or until ctx ends. Call leave when the RayCluster is connected or cannot be.
func (e *entries) Enter(ctx context.Context) (leave func()) {
	select {
	case e.places <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	free := sync.OnceFunc(func() { <-e.places })
	late := time.AfterFunc(longestEntry, free)
	return func() {
		late.Stop()
		free()
	}
}
