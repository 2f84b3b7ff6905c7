package controller

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// traces is how many random traces the loop is driven through; each has a seed of its own.
const traces = 10_000

// trace is random work on workers that take one piece each, with an operator and raylets that take their time, and with
// reports as old as a real head's: the raylet that holds the waiting work and each worker report once a second, each at
// a moment of its own (docs/reference/facts.md#load-report-lag).
type trace struct {
	*world
	random *rand.Rand
	// waiting counts pieces of work without a worker, work says until when each worker is busy.
	waiting int
	work    map[string]time.Time
	idle    map[string]time.Time
	joins   map[string]time.Time
	// past holds the truth of the last moments, newest last; needs how much work waited or ran at each.
	past  []moment
	needs []int
	// over says which decisions launched too much, and which workers were deleted with work.
	over []string
}

// moment is what was true at one time.
type moment struct {
	at      time.Time
	waiting int
	nodes   []raydemand.Node
}

const traceStep = 250 * time.Millisecond

func newTrace(t *testing.T, seed uint64) *trace {
	tr := &trace{random: rand.New(rand.NewPCG(seed, 7)), work: map[string]time.Time{}, idle: map[string]time.Time{}, joins: map[string]time.Time{}}
	tr.world = newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 6))
	tr.kube.cluster.IdleTimeout = 2 * time.Second
	tr.ray.reading = tr.report
	tr.ray.draining = tr.refuseBusy
	tr.c.config.Published = tr.check
	return tr
}

// lastTick is the last moment at which a raylet with that phase was asked: once a second.
func lastTick(now time.Time, phase time.Duration) time.Time {
	return now.Add(-phase).Truncate(time.Second).Add(phase)
}

// report shows the nodes and the waiting work as old as their reports are.
func (tr *trace) report() {
	tr.ray.demand.Requests = nil
	if n := tr.asOf(lastTick(tr.now, 0)).waiting; n > 0 {
		tr.ray.demand.Requests = []raydemand.Request{{Bundle: gpu(1), Count: int64(n)}}
	}
	for i := range tr.ray.nodes {
		n := &tr.ray.nodes[i]
		if n.Head || n.Status == raydemand.Dead {
			continue
		}
		phase := time.Duration(int(n.Instance[len(n.Instance)-1])%4) * traceStep
		for _, old := range tr.asOf(lastTick(tr.now, phase)).nodes {
			if old.Instance == n.Instance {
				n.Status, n.Idle, n.Available = old.Status, old.Idle, old.Available
			}
		}
	}
}

func (tr *trace) asOf(at time.Time) moment {
	for _, m := range slices.Backward(tr.past) {
		if !m.at.After(at) {
			return m
		}
	}
	return tr.past[0]
}

// refuseBusy lets raylets refuse what they know better.
func (tr *trace) refuseBusy() {
	for pod, until := range tr.work {
		tr.ray.refuse[pod] = until.After(tr.now)
	}
}

// check looks at every decision: no pod is launched beyond what work needed at any moment that reports can speak of. A
// goal that is raised to the pods there are launches none: a named pod has come to life and stays.
func (tr *trace) check(d *addon.Decision) {
	need := slices.Max(append(tr.needs, 0))
	stay := 0
	for _, p := range tr.kube.cluster.Workers {
		if !slices.Contains(tr.group("gpu").WorkersToDelete, p.Pod) {
			stay++
		}
	}
	need = max(need, stay)
	for _, a := range d.Actions {
		if a.Kind == addon.ActionPatch && a.Result == addon.ResultOK && a.To > a.From && a.To > need {
			tr.over = append(tr.over, fmt.Sprintf("%v: replicas %d → %d for %d pieces of work", d.At.Format(time.TimeOnly), a.From, a.To, need))
		}
	}
}

// step moves everything by one tick and runs a cycle.
func (tr *trace) step() {
	tr.now = tr.now.Add(traceStep)
	if tr.random.IntN(2) == 0 {
		tr.operate()
		tr.lostWork()
	}
	for _, p := range tr.kube.cluster.Workers {
		if tr.joins[p.Pod].IsZero() {
			tr.joins[p.Pod] = tr.now.Add(time.Duration(200+tr.random.IntN(3000)) * time.Millisecond)
		}
		if _, joined := tr.idle[p.Pod]; !joined && tr.now.After(tr.joins[p.Pod]) {
			tr.join(p)
		}
	}
	if tr.random.IntN(8) == 0 {
		tr.waiting += 1 + tr.random.IntN(3)
	}
	tr.schedule()
	tr.remember()
	tr.c.Cycle(context.Background(), key)
}

// lostWork notes each worker that is deleted while it works.
func (tr *trace) lostWork() {
	for pod, until := range tr.work {
		if until.After(tr.now) && !slices.ContainsFunc(tr.kube.cluster.Workers, func(p nodepool.Worker) bool { return p.Pod == pod }) {
			tr.over = append(tr.over, fmt.Sprintf("%v: %s is deleted with work", tr.now.Format(time.TimeOnly), pod))
		}
	}
}

func (tr *trace) join(p nodepool.Worker) {
	tr.idle[p.Pod] = tr.now
	g, _ := tr.kube.cluster.Group(p.Group)
	tr.ray.nodes = append(tr.ray.nodes, raydemand.Node{ID: nodeID(p.Pod), Instance: p.Pod, Group: p.Group,
		Status: raydemand.Idle, Total: g.Resources, Available: g.Resources})
}

// schedule ends work that is done and starts what waits wherever a living worker is free, as Ray does at once.
func (tr *trace) schedule() {
	for i := range tr.ray.nodes {
		n := &tr.ray.nodes[i]
		if n.Head || n.Status == raydemand.Dead || n.Status == raydemand.Draining {
			continue
		}
		if until, busy := tr.work[n.Instance]; busy && !until.After(tr.now) {
			delete(tr.work, n.Instance)
			tr.idle[n.Instance] = tr.now
		}
		if _, busy := tr.work[n.Instance]; !busy && tr.waiting > 0 {
			tr.waiting--
			tr.work[n.Instance] = tr.now.Add(time.Duration(100+tr.random.IntN(4000)) * time.Millisecond)
		}
	}
}

// remember notes the truth of this moment.
func (tr *trace) remember() {
	now := moment{at: tr.now, waiting: tr.waiting}
	busy := 0
	for _, n := range tr.ray.nodes {
		if n.Head || n.Status == raydemand.Dead {
			continue
		}
		n.Status, n.Available, n.Idle = raydemand.Idle, n.Total, tr.now.Sub(tr.idle[n.Instance])
		if _, works := tr.work[n.Instance]; works {
			n.Status, n.Available, n.Idle = raydemand.Running, raydemand.Bundle{raydemand.CPU: n.Total[raydemand.CPU]}, 0
			busy++
		}
		now.nodes = append(now.nodes, n)
	}
	const kept = 6 // a second of reports and the steps around it
	tr.past = append(tr.past, now)
	tr.past = tr.past[max(0, len(tr.past)-kept):]
	tr.needs = append(tr.needs, tr.waiting+busy)
	tr.needs = tr.needs[max(0, len(tr.needs)-kept):]
}

// TestTenThousandTracesWithLaggingReportsLaunchNoWorkerTooMany drives the loop through random work until all of it is
// done and all workers are gone. No worker is deleted with work.
func TestTenThousandTracesWithLaggingReportsLaunchNoWorkerTooMany(t *testing.T) {
	t.Parallel()
	count := uint64(traces)
	if testing.Short() {
		count = traces / 20
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // a trace lives for milliseconds, so collecting seldom is faster
	var wg sync.WaitGroup
	seeds := make(chan uint64)
	var mu sync.Mutex
	patches, failed := 0, 0
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := range seeds {
				tr := newTrace(t, seed)
				for range 32 {
					tr.step()
				}
				mu.Lock()
				patches += len(tr.kube.changes)
				if len(tr.over) > 0 && failed < 5 {
					t.Errorf("seed %d: %v", seed, tr.over)
				}
				failed += min(1, len(tr.over))
				mu.Unlock()
			}
		})
	}
	for seed := range count {
		seeds <- seed
	}
	close(seeds)
	wg.Wait()
	if uint64(patches) < count {
		t.Errorf("%d traces made %d patches: the work asks for too little", count, patches)
	}
	t.Logf("%d traces, %d patches, %d with a worker too many", count, patches, failed)
}
