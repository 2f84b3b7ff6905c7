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

const (
	// longPause is the shortest pause after which a cycle waits for a turn. A RayCluster with such a pause is mostly at
	// rest, and a tenth of a second does not matter to it.
	longPause = 500 * time.Millisecond
	// turnsAtOnce is how many cycles after long pauses run at once. On a full machine, a thousand of them that share
	// its cores delay every step of every other cycle.
	turnsAtOnce = 64
	// turnLasts is how long a cycle counts at most. 64 cycles on two cores take less, so one that takes longer waits
	// for a head or the API server. 64 heads that do not answer let 256 other cycles begin per second.
	turnLasts = 250 * time.Millisecond
)

// pool runs the cycles of each RayCluster one after another, in a goroutine for each cycle, so that a slow head of one
// RayCluster never delays another: with a bounded number of goroutines, a few unreachable heads would block the rest.
type pool struct {
	reconcile Reconcile
	// exists is called after a cycle; a RayCluster that is gone is forgotten when no cycle is due.
	exists func(nodepool.ClusterKey) bool
	log    *slog.Logger
	// turns has a token for each cycle after a long pause that counts; those that wait get one in order.
	turns chan struct{}

	wg sync.WaitGroup
	mu sync.Mutex
	// Guarded by mu. ctx is nil before Run, and no cycle begins after it has ended.
	ctx   context.Context
	works map[nodepool.ClusterKey]*work
}

// work is what a pool knows of one RayCluster. The pool's mu guards all fields but the channel.
type work struct {
	// event has a token while an event wants a cycle.
	event chan struct{}
	// timer begins the next cycle, and running says that one runs. An event begins none before rested.
	timer   *time.Timer
	running bool
	rested  time.Time
	// long: the pause after the last cycle was a long one.
	long bool
	// forRequest is when a changed request last started a cycle, or will start one.
	forRequest time.Time
	// panicked is what the last cycle panicked with, empty if it did not, and panics how many did in a row.
	panicked string
	panics   int
}

// newPool returns a pool that runs no cycle before Run. exists is called after each cycle.
func newPool(exists func(nodepool.ClusterKey) bool, log *slog.Logger) *pool {
	return &pool{exists: exists, log: log, turns: make(chan struct{}, turnsAtOnce),
		works: map[nodepool.ClusterKey]*work{}}
}

// Run runs the cycles of all keys enqueued so far and later, and returns when ctx and every cycle have ended.
func (p *pool) Run(ctx context.Context, reconcile Reconcile) {
	p.mu.Lock()
	p.ctx, p.reconcile = ctx, reconcile
	for _, w := range p.works {
		w.timer.Reset(0)
	}
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock() // a cycle that has begun is one to wait for
	for _, w := range p.works {
		w.timer.Stop()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

// Enqueue requests a cycle soon. Requests that arrive while one waits are merged.
func (p *pool) Enqueue(key nodepool.ClusterKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.enqueue(key)
}

// EnqueueForRequest requests a cycle after a request changed: now, or requestPause after the last cycle that such a
// change started.
func (p *pool) EnqueueForRequest(key nodepool.ClusterKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, w := time.Now(), p.works[key]
	switch {
	case w == nil || now.Sub(w.forRequest) >= requestPause:
		p.enqueue(key).forRequest = now
	case !w.forRequest.After(now): // otherwise one is to come, and takes this change too
		w.forRequest = w.forRequest.Add(requestPause)
		time.AfterFunc(time.Until(w.forRequest), func() { p.Enqueue(key) })
	}
}

// enqueue notes that an event wants a cycle. The caller holds mu.
func (p *pool) enqueue(key nodepool.ClusterKey) *work {
	w := p.works[key]
	if w == nil {
		w = &work{event: make(chan struct{}, 1)}
		w.timer = time.AfterFunc(time.Hour, func() { p.work(key, w) })
		w.timer.Stop()
		p.works[key] = w
	}
	select {
	case w.event <- struct{}{}:
	default:
	}
	if p.ctx != nil && p.ctx.Err() == nil && !w.running {
		w.timer.Reset(time.Until(w.rested))
	}
	return w
}

// work runs a cycle, and sets the timer of the next one.
func (p *pool) work(key nodepool.ClusterKey, w *work) {
	p.mu.Lock()
	if p.ctx.Err() != nil || w.running || time.Now().Before(w.rested) { // the timer fired while it was set again
		p.mu.Unlock()
		return
	}
	w.running = true
	p.wg.Add(1)
	defer p.wg.Done()
	p.mu.Unlock()
	quiet, leave := p.begin(w)
	if p.ctx.Err() != nil {
		return
	}
	next, panicked := p.cycle(key, quiet)
	leave()
	needed := next > 0 || panicked != "" || p.exists(key) // a cycle that is due is one that the key still needs
	pause := minPause
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.panicked = panicked; panicked == "" {
		w.panics = 0
	} else {
		pause = min(firstBackOff<<min(w.panics, 10), lastBackOff)
		next = pause
		w.panics++
	}
	w.running, w.rested, w.long = false, time.Now().Add(pause), next >= longPause
	switch {
	case p.ctx.Err() != nil:
	case len(w.event) > 0:
		w.timer.Reset(pause)
	case next > 0:
		w.timer.Reset(max(reflector.Jittered(next), pause))
	case !needed:
		delete(p.works, key)
	}
}

// begin takes up the event that wants a cycle. Without one the cycle is quiet, and after a long pause it waits for a
// turn, or for an event. leave must be called when the cycle ends.
func (p *pool) begin(w *work) (quiet bool, leave func()) {
	none := func() {}
	select {
	case <-w.event:
		return false, none
	default:
	}
	if !w.long {
		return true, none
	}
	select {
	case p.turns <- struct{}{}:
		leave = sync.OnceFunc(func() { <-p.turns })
		time.AfterFunc(turnLasts, leave)
		return true, leave
	case <-w.event:
	case <-p.ctx.Done():
	}
	return false, none
}

// CyclePanicked says that a cycle of this RayCluster panicked, and is retried with growing pauses.
const CyclePanicked = "cycle-panicked"

// Panic is what a Reconcile panics with to pass on the context of the cycle, which names its trace. Cause is the
// original panic.
type Panic struct {
	Context context.Context
	Cause   any
}

// cycle calls reconcile, and returns what it panicked with.
func (p *pool) cycle(key nodepool.ClusterKey, quiet bool) (next time.Duration, panicked string) {
	defer func() {
		if cause := recover(); cause != nil {
			in, named := cause.(Panic)
			if !named {
				in = Panic{context.Background(), cause}
			}
			panicked = fmt.Sprint(in.Cause)
			p.log.ErrorContext(in.Context, "cycle panicked", "cluster", key.String(), "cause", panicked, "stack",
				string(debug.Stack()))
		}
	}()
	return p.reconcile(p.ctx, key, quiet), ""
}

// AddTo adds the finding that the last cycle of a cluster panicked.
func (p *pool) AddTo(cluster *nodepool.Cluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.works[cluster.Key]; w != nil && w.panicked != "" {
		cluster.Findings = append(cluster.Findings, raydemand.Finding{
			Code: CyclePanicked, Severity: raydemand.Error, Object: "RayCluster " + cluster.Key.String(),
			Seen: w.panicked,
			Why:  "its last cycle panicked; it is retried with growing pauses, and other RayClusters are not affected",
			Fix:  "report it with the stack in the log",
		})
	}
}
