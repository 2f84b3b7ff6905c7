package kube

import (
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

const (
	// requestPause separates two cycles of one cluster that changed requests start: a stream of them is planned in steps, each with all that
	// came since the one before.
	requestPause = 100 * time.Millisecond
	// statusDelay is within what a cycle comes that has nothing to plan, only to show what became of a request.
	statusDelay = time.Second
)

// trigger starts the cycles of one worker. What is not its channel is guarded by the pool's mu.
type trigger struct {
	// fired has a token while a cycle shall run now.
	fired chan struct{}
	// requestedAt is for when a changed request last let one run.
	requestedAt time.Time
	// later fires at dueAt, which is zero while it does not.
	later *time.Timer
	dueAt time.Time
	// dueForRequest: it fires for a changed request too, not only to show what became of one.
	dueForRequest bool
}

func newTrigger() *trigger { return &trigger{fired: make(chan struct{}, 1)} }

// fire lets a cycle run now, and none later for what that one takes in.
func (t *trigger) fire() {
	t.disarm()
	select {
	case t.fired <- struct{}{}:
	default:
	}
}

func (t *trigger) disarm() {
	if t.later != nil {
		t.later.Stop()
	}
	t.dueAt, t.dueForRequest = time.Time{}, false
}

// enqueueForRequest asks for a cycle since a request has changed: now, or askedPause after the last one that such a change has started.
func (p *pool) enqueueForRequest(key nodepool.ClusterKey) {
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

// enqueueForStatus asks for a cycle within toldPause.
func (p *pool) enqueueForStatus(key nodepool.ClusterKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.triggers[key]; t != nil {
		p.fireAt(key, t, time.Now().Add(statusDelay))
	}
}

// fireAt lets a cycle run at a time, unless one comes earlier. The caller holds mu.
func (p *pool) fireAt(key nodepool.ClusterKey, t *trigger, at time.Time) {
	if p.closed || !t.dueAt.IsZero() && !at.Before(t.dueAt) {
		return
	}
	t.disarm()
	t.dueAt = at
	t.later = time.AfterFunc(time.Until(at), func() { p.enqueueDue(key, at) })
}

// enqueueDue asks for the cycle that was to run at a time, unless another has run instead.
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
