package kube

import (
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

const (
	// requestPause separates two cycles of one cluster that changed requests start, so that a stream of requests is
	// planned in steps, each with everything that arrived since the last one.
	requestPause = 100 * time.Millisecond
	// statusDelay is the longest delay of a cycle that has nothing to plan and only publishes the new status of a
	// request.
	statusDelay = time.Second
)

// trigger starts the cycles of one worker. The pool's mu guards all fields but the channel.
type trigger struct {
	// fired has a token while a cycle should run now.
	fired chan struct{}
	// requestedAt is when a changed request last started a cycle.
	requestedAt time.Time
	// later fires at dueAt, which is zero while it is stopped.
	later *time.Timer
	dueAt time.Time
	// dueForRequest: it fires for a changed request too, not only for a status.
	dueForRequest bool
}

func newTrigger() *trigger { return &trigger{fired: make(chan struct{}, 1)} }

// fire starts a cycle now, and cancels a later one, which would see nothing more.
func (t *trigger) fire() {
	t.disarm()
	select {
	case t.fired <- struct{}{}:
	default:
	}
}

// merge forgets that a cycle should run now, because one begins, and reports whether one should.
func (t *trigger) merge() bool {
	select {
	case <-t.fired:
		return true
	default:
		return false
	}
}

func (t *trigger) disarm() {
	if t.later != nil {
		t.later.Stop()
	}
	t.dueAt, t.dueForRequest = time.Time{}, false
}

// EnqueueForRequest requests a cycle after a request changed: now, or requestPause after the last cycle that such a
// change started.
func (p *pool) EnqueueForRequest(key nodepool.ClusterKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if t := p.triggers[key]; t != nil && t.requestedAt.Add(requestPause).After(now) {
		p.fireAt(key, t, t.requestedAt.Add(requestPause))
		t.dueForRequest = true
		return
	}
	p.trigger(key)
	if t := p.triggers[key]; t != nil {
		t.requestedAt = now
	}
}

// EnqueueForStatus requests a cycle within statusDelay.
func (p *pool) EnqueueForStatus(key nodepool.ClusterKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.triggers[key]; t != nil {
		p.fireAt(key, t, time.Now().Add(statusDelay))
	}
}

// fireAt starts a cycle at a time, unless one starts earlier. The caller holds mu.
func (p *pool) fireAt(key nodepool.ClusterKey, t *trigger, at time.Time) {
	if p.closed || !t.dueAt.IsZero() && !at.Before(t.dueAt) {
		return
	}
	t.disarm()
	t.dueAt = at
	t.later = time.AfterFunc(time.Until(at), func() { p.enqueueDue(key, at) })
}

// enqueueDue starts the cycle that was due at a time, unless another has run instead.
func (p *pool) enqueueDue(key nodepool.ClusterKey, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.triggers[key]; t != nil && t.dueAt.Equal(at) {
		if t.dueForRequest {
			t.requestedAt = at
		}
		p.trigger(key)
	}
}
