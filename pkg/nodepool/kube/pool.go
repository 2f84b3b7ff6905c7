package kube

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Reconcile runs one cycle of one RayCluster and returns when the next is due even if nothing happens; zero or less
// means only when something does. quiet: nothing has happened here since the last cycle, which is over for as long as
// it returned. Cycles of one key never overlap.
type Reconcile func(ctx context.Context, key nodepool.ClusterKey, quiet bool) (next time.Duration)

const (
	// minPause separates two cycles of one cluster, so that a burst of pod events becomes a few cycles.
	minPause = 20 * time.Millisecond
	// requestPause separates two cycles of one cluster that changed requests start, so that a stream of requests is
	// planned in steps, each with everything that arrived since the last one.
	requestPause = 100 * time.Millisecond
	// firstBackOff and lastBackOff bound the pause after a panic, which doubles each time.
	firstBackOff = time.Second
	lastBackOff  = time.Minute
)

// pool runs one goroutine for each RayCluster, so that a slow head of one never delays another. A goroutine that waits
// costs a few kilobytes; with a bounded number of them a few unreachable heads would block the rest. Cycles run in
// runners, because a goroutine keeps the stack of its last cycle, up to 64 KB.
type pool struct {
	reconcile Reconcile
	// exists is called after a cycle; the worker of a RayCluster that is gone ends when no cycle is due.
	exists func(nodepool.ClusterKey) bool
	log    *slog.Logger
	turns  chan struct{} // see turn

	wg sync.WaitGroup
	mu sync.Mutex
	// Guarded by mu. ctx is nil before Run; until then triggers wait in early. closed is set before Run waits for the
	// workers.
	ctx      context.Context
	closed   bool
	early    map[nodepool.ClusterKey]bool
	triggers map[nodepool.ClusterKey]*trigger
	// idle are runners without a cycle, the last one used at the end.
	idle []chan func()
}

// mostIdle is how many runners wait for cycles at most. As many cycles at once are rare.
const mostIdle = 256

// newPool returns a pool that runs no cycle before Run. exists is called after each cycle.
func newPool(exists func(nodepool.ClusterKey) bool, log *slog.Logger) *pool {
	return &pool{
		exists: exists, log: log, turns: make(chan struct{}, turnsAtOnce),
		early: map[nodepool.ClusterKey]bool{}, triggers: map[nodepool.ClusterKey]*trigger{},
	}
}

// Run starts the workers of all keys enqueued so far and later, and returns when ctx and every worker have ended.
func (p *pool) Run(ctx context.Context, reconcile Reconcile) {
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
	p.mu.Unlock()
	p.wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, runner := range p.idle {
		close(runner)
	}
	p.idle = nil
}

// run calls do in a runner, and returns when it has ended.
func (p *pool) run(do func()) {
	done := make(chan struct{})
	var runner chan func()
	p.mu.Lock()
	if last := len(p.idle) - 1; last >= 0 {
		runner, p.idle = p.idle[last], p.idle[:last]
	}
	p.mu.Unlock()
	if runner == nil {
		runner = make(chan func())
		go p.runner(runner)
	}
	runner <- func() {
		defer close(done)
		do()
	}
	<-done
}

// runner calls what it gets, one after another, until that is closed, or enough others wait.
func (p *pool) runner(calls chan func()) {
	for do := range calls {
		do()
		p.mu.Lock()
		enough := p.closed || len(p.idle) == mostIdle
		if !enough {
			p.idle = append(p.idle, calls)
		}
		p.mu.Unlock()
		if enough {
			return
		}
	}
}

// trigger starts the cycles of one worker. The pool's mu guards all fields but the channel.
type trigger struct {
	// fired has a token while a cycle should run now.
	fired chan struct{}
	// forRequest is when a changed request last started a cycle, or will start one.
	forRequest time.Time
	// panicked is what the last cycle panicked with; empty if it did not.
	panicked string
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

// Enqueue requests a cycle soon. Requests that arrive while one waits are merged.
func (p *pool) Enqueue(key nodepool.ClusterKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trigger(key)
}

// EnqueueForRequest requests a cycle after a request changed: now, or requestPause after the last cycle that such a
// change started.
func (p *pool) EnqueueForRequest(key nodepool.ClusterKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, t := time.Now(), p.triggers[key]
	switch {
	case t == nil || now.Sub(t.forRequest) >= requestPause:
		if t = p.trigger(key); t != nil {
			t.forRequest = now
		}
	case !t.forRequest.After(now): // otherwise one is to come, and takes this change too
		t.forRequest = t.forRequest.Add(requestPause)
		time.AfterFunc(time.Until(t.forRequest), func() { p.Enqueue(key) })
	}
}

// trigger starts the worker if there is none, and returns its trigger; nil while no worker runs. The caller holds mu.
func (p *pool) trigger(key nodepool.ClusterKey) *trigger {
	if p.closed {
		return nil
	}
	if p.ctx == nil {
		p.early[key] = true
		return nil
	}
	t := p.triggers[key]
	if t == nil {
		t = &trigger{fired: make(chan struct{}, 1)}
		p.triggers[key] = t
		p.wg.Go(func() { p.work(p.ctx, key, t) })
	}
	select {
	case t.fired <- struct{}{}:
	default:
	}
	return t
}

func (p *pool) work(ctx context.Context, key nodepool.ClusterKey, t *trigger) {
	panics := 0
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	turn, long := newTurn(p.turns), false
	var rested time.Time // from when on an event may start a cycle
	for {
		quiet := false
		select {
		case <-ctx.Done():
			return
		case <-t.fired:
			if wait := time.Until(rested); wait > 0 {
				if !reflector.Sleep(ctx, wait) {
					return
				}
				t.merge()
			}
		case <-due.C:
			quiet = !t.merge() && (!long || turn.take(ctx, t.fired))
			if ctx.Err() != nil {
				return
			}
		}
		var next time.Duration
		var died bool
		p.run(func() { next, died = p.cycle(ctx, key, t, quiet) })
		turn.leave()
		pause := minPause
		if died {
			pause = min(firstBackOff<<min(panics, 10), lastBackOff)
			next = pause
			panics++
		} else {
			panics = 0
		}
		if next <= 0 && !p.exists(key) && p.retire(key, t) { // a cycle that is due is one that the key still needs
			return
		}
		rested = time.Now().Add(pause)
		due.Stop()
		long = next >= longPause
		if next > 0 {
			due.Reset(max(reflector.Jittered(next), pause))
		}
	}
}

// CyclePanicked says that a cycle of this RayCluster panicked, and is retried with growing pauses.
const CyclePanicked = "cycle-panicked"

// Panic is what a Reconcile panics with to pass on the context of the cycle, which names its trace. Cause is the
// original panic.
type Panic struct {
	Context context.Context
	Cause   any
}

// cycle calls reconcile and recovers from its panics.
func (p *pool) cycle(
	ctx context.Context, key nodepool.ClusterKey, t *trigger, quiet bool,
) (next time.Duration, died bool) {
	defer func() {
		panicked := ""
		if cause := recover(); cause != nil {
			in, named := cause.(Panic)
			if !named {
				in = Panic{context.Background(), cause}
			}
			panicked, next, died = fmt.Sprint(in.Cause), 0, true
			p.log.ErrorContext(in.Context, "cycle panicked", "cluster", key.String(), "cause", panicked, "stack",
				string(debug.Stack()))
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		t.panicked = panicked
	}()
	return p.reconcile(ctx, key, quiet), false
}

// AddTo adds the finding that the last cycle of a cluster panicked.
func (p *pool) AddTo(cluster *nodepool.Cluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.triggers[cluster.Key]; t != nil && t.panicked != "" {
		cluster.Findings = append(cluster.Findings, raydemand.Finding{
			Code: CyclePanicked, Severity: raydemand.Error, Object: "RayCluster " + cluster.Key.String(),
			Seen: t.panicked,
			Why:  "its last cycle panicked; it is retried with growing pauses, and other RayClusters are not affected",
			Fix:  "report it with the stack in the log",
		})
	}
}

// retire forgets a worker unless it has been triggered meanwhile.
func (p *pool) retire(key nodepool.ClusterKey, t *trigger) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(t.fired) > 0 {
		return false
	}
	delete(p.triggers, key)
	return true
}
