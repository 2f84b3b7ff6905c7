package kube

import (
	"context"
	"sync"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/timing"
)

// Reconcile makes one cycle of one RayCluster and says when the next is due even if nothing happens; zero or less means
// only when something does. It is never called twice at a time for one key.
type Reconcile func(ctx context.Context, key nodepool.ClusterKey) (next time.Duration)

const (
	// minPause separates two cycles of one cluster: a burst of pod events becomes a few cycles, not one each.
	minPause = 20 * time.Millisecond
	// firstBackOff and lastBackOff bound the pause after a panic, doubling from one to the other.
	firstBackOff = time.Second
	lastBackOff  = time.Minute
)

// pool runs one goroutine for each RayCluster, so that a slow head of one never delays another. A goroutine costs a few
// kilobytes; a bounded number of them would let a few dead heads block the rest.
type pool struct {
	reconcile Reconcile
	// exists is asked after a cycle; the worker of a RayCluster that is gone ends.
	exists func(nodepool.ClusterKey) bool
	// panicked is told what a cycle died of, and nil when one went well again.
	panicked func(key nodepool.ClusterKey, cause any)

	wg sync.WaitGroup
	mu sync.Mutex
	// Guarded by mu. ctx is nil before run; triggers of that time wait in early. closed is set before run waits for the workers.
	ctx      context.Context
	closed   bool
	early    map[nodepool.ClusterKey]bool
	triggers map[nodepool.ClusterKey]*trigger
}

func newPool(exists func(nodepool.ClusterKey) bool, panicked func(nodepool.ClusterKey, any)) *pool {
	return &pool{
		exists: exists, panicked: panicked,
		early: map[nodepool.ClusterKey]bool{}, triggers: map[nodepool.ClusterKey]*trigger{},
	}
}

// run starts the workers of all keys enqueued so far and later, and returns when ctx has ended and every worker too.
func (p *pool) run(ctx context.Context, reconcile Reconcile) {
	p.mu.Lock()
	p.ctx, p.reconcile = ctx, reconcile
	for key := range p.early {
		p.trigger(key)
	}
	p.early = nil
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	p.closed = true
	for _, t := range p.triggers {
		t.disarm()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// enqueue asks for a cycle soon. Triggers that meet a waiting one are one.
func (p *pool) enqueue(key nodepool.ClusterKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trigger(key)
}

// trigger starts the worker where there is none. The caller holds mu.
func (p *pool) trigger(key nodepool.ClusterKey) {
	if p.closed {
		return
	}
	if p.ctx == nil {
		p.early[key] = true
		return
	}
	t := p.triggers[key]
	if t == nil {
		t = newTrigger()
		p.triggers[key] = t
		p.wg.Go(func() { p.work(p.ctx, key, t) })
	}
	t.fire()
}

func (p *pool) work(ctx context.Context, key nodepool.ClusterKey, t *trigger) {
	panics := 0
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.fired:
		case <-due.C:
		}
		next, died := p.cycle(ctx, key)
		pause := minPause
		if died {
			pause = min(firstBackOff<<min(panics, 10), lastBackOff)
			next = pause
			panics++
		} else {
			panics = 0
		}
		if !p.exists(key) && p.retire(key, t) {
			return
		}
		if !timing.Sleep(ctx, pause) {
			return
		}
		due.Stop()
		if next > 0 {
			due.Reset(max(timing.Jittered(next)-pause, 0))
		}
	}
}

// cycle calls reconcile and survives it.
func (p *pool) cycle(ctx context.Context, key nodepool.ClusterKey) (next time.Duration, died bool) {
	defer func() {
		if cause := recover(); cause != nil {
			next, died = 0, true
			p.panicked(key, cause)
		}
	}()
	next = p.reconcile(ctx, key)
	p.panicked(key, nil)
	return next, false
}

// retire forgets a worker unless it has been triggered meanwhile, or is to run later.
func (p *pool) retire(key nodepool.ClusterKey, t *trigger) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(t.fired) > 0 || !t.dueAt.IsZero() {
		return false
	}
	delete(p.triggers, key)
	return true
}
