package kube

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
)

var chat = nodepool.ClusterKey{Namespace: "ml", Name: "chat"}

// journal notes when cycles of which cluster ran, and which of them no event has started.
type journal struct {
	mu    sync.Mutex
	times map[nodepool.ClusterKey][]time.Duration // since start
	quiet map[nodepool.ClusterKey][]bool
	start time.Time
}

func (j *journal) note(key nodepool.ClusterKey, quiet bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.times[key], j.quiet[key] = append(j.times[key], time.Since(j.start)), append(j.quiet[key], quiet)
}

// at returns when the cluster's cycles ran.
func (j *journal) at(key nodepool.ClusterKey) []time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.times[key])
}

// startedByTime returns which of the cluster's cycles no event has started.
func (j *journal) startedByTime(key nodepool.ClusterKey) []bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.quiet[key])
}

func (j *journal) count(key nodepool.ClusterKey) int { return len(j.at(key)) }

// workersOf counts the RayClusters that the pool knows.
func workersOf(p *pool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.works)
}

// inPool runs test beside a pool; time is synctest's, so nothing really waits.
func inPool(t *testing.T, reconcile func(j *journal, key nodepool.ClusterKey) time.Duration, test func(p *pool, j *journal)) {
	inPoolOf(t, func(nodepool.ClusterKey) bool { return true }, reconcile, test)
}

func inPoolOf(t *testing.T, exists func(nodepool.ClusterKey) bool, reconcile func(j *journal, key nodepool.ClusterKey) time.Duration, test func(p *pool, j *journal)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		j := &journal{times: map[nodepool.ClusterKey][]time.Duration{}, quiet: map[nodepool.ClusterKey][]bool{}, start: time.Now()}
		p := newPool(exists, slog.New(slog.DiscardHandler))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p.Run(ctx, func(_ context.Context, key nodepool.ClusterKey, quiet bool) time.Duration {
				j.note(key, quiet)
				return reconcile(j, key)
			})
		}()
		synctest.Wait()
		test(p, j)
		cancel()
		<-ended
	})
}

func TestACycleRepeatsWhenDueWithJitter(t *testing.T) {
	every := func(*journal, nodepool.ClusterKey) time.Duration { return time.Second }
	inPool(t, every, func(p *pool, j *journal) {
		p.Enqueue(llm)
		time.Sleep(100 * time.Second)
		times := j.at(llm)
		if len(times) < 90 || len(times) > 112 {
			t.Fatalf("%d cycles in 100 s, want about 100", len(times))
		}
		different := map[time.Duration]bool{}
		for i := 1; i < len(times); i++ {
			gap := times[i] - times[i-1]
			different[gap] = true
			if gap < 900*time.Millisecond || gap > 1100*time.Millisecond {
				t.Errorf("a gap of %v, want 1 s ± 10 %%", gap)
			}
		}
		if len(different) < 10 {
			t.Error("the gaps do not vary: cycles of many clusters would fall together")
		}
	})
}

func TestACycleKnowsWhetherAnEventStartedIt(t *testing.T) {
	every := func(*journal, nodepool.ClusterKey) time.Duration { return time.Second }
	inPool(t, every, func(p *pool, j *journal) {
		p.Enqueue(llm)
		time.Sleep(1500 * time.Millisecond)
		p.Enqueue(llm)
		time.Sleep(1500 * time.Millisecond)
		if got, want := j.startedByTime(llm), []bool{false, true, false, true}; !slices.Equal(got, want) {
			t.Errorf("quiet: %v, want %v", got, want)
		}
	})
}

func TestABurstOfEventsIsAFewCycles(t *testing.T) {
	inPool(t, never, func(p *pool, j *journal) {
		for range 1000 {
			p.Enqueue(llm)
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(time.Second)
		if n := j.count(llm); n < 2 || n > 8 {
			t.Errorf("%d cycles for events of 100 ms, want one per %v", n, minPause)
		}
	})
}

func TestAnEventDuringACycleIsNotLost(t *testing.T) {
	slow := func(*journal, nodepool.ClusterKey) time.Duration { time.Sleep(time.Second); return 0 }
	inPool(t, slow, func(p *pool, j *journal) {
		p.Enqueue(llm)
		time.Sleep(500 * time.Millisecond)
		p.Enqueue(llm)
		time.Sleep(5 * time.Second)
		if n := j.count(llm); n != 2 {
			t.Errorf("%d cycles, want 2", n)
		}
	})
}

func TestAStuckClusterDelaysNoOther(t *testing.T) {
	reconcile := func(_ *journal, key nodepool.ClusterKey) time.Duration {
		if key == chat {
			time.Sleep(time.Hour)
		}
		return time.Second
	}
	inPool(t, reconcile, func(p *pool, j *journal) {
		p.Enqueue(chat)
		p.Enqueue(llm)
		time.Sleep(10 * time.Second)
		if n := j.count(llm); n < 9 {
			t.Errorf("%d cycles beside a stuck cluster, want about 10", n)
		}
	})
}

func TestAPanicIsSurvivedWithGrowingPauses(t *testing.T) {
	panicking := func(j *journal, _ nodepool.ClusterKey) time.Duration {
		if j.count(llm) < 6 {
			panic("no such thing")
		}
		return 0
	}
	inPool(t, panicking, func(p *pool, j *journal) {
		for i := range 200 { // events do not shorten the pause
			shown := nodepool.Cluster{Key: llm}
			if p.AddTo(&shown); i == 10 && (len(shown.Findings) != 1 || shown.Findings[0].Seen != "no such thing") || i == 199 && len(shown.Findings) > 0 {
				t.Errorf("findings %v after %d events", shown.Findings, i)
			}
			p.Enqueue(llm)
			time.Sleep(200 * time.Millisecond)
		}
		times := j.at(llm)
		for i, least := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second} {
			if gap := times[i+1] - times[i]; gap < least {
				t.Errorf("pause %d is %v, want at least %v", i, gap, least)
			}
		}
	})
}

func TestTheWorkerOfAGoneClusterEndsAndCanComeBack(t *testing.T) {
	var mu sync.Mutex
	gone := false
	exists := func(nodepool.ClusterKey) bool { mu.Lock(); defer mu.Unlock(); return !gone }
	every := func(_ *journal, key nodepool.ClusterKey) time.Duration {
		if !exists(key) {
			return 0
		}
		return time.Second
	}
	inPoolOf(t, exists, every, func(p *pool, j *journal) {
		p.Enqueue(llm)
		time.Sleep(3 * time.Second)
		mu.Lock()
		gone = true
		mu.Unlock()
		p.Enqueue(llm)
		time.Sleep(time.Second)
		before := j.count(llm)
		time.Sleep(time.Minute)
		if after := j.count(llm); after != before || workersOf(p) != 0 {
			t.Errorf("%d cycles after it was gone, %d workers left", after-before, workersOf(p))
		}
		mu.Lock()
		gone = false
		mu.Unlock()
		p.Enqueue(llm)
		time.Sleep(3 * time.Second)
		if after := j.count(llm); after < before+2 {
			t.Error("the worker did not come back")
		}
	})
}

// TestAGoneClusterGetsTheCycleThatIsDue has a cycle that does nothing yet when the cluster is deleted, as one does that
// waits until others have had theirs.
func TestAGoneClusterGetsTheCycleThatIsDue(t *testing.T) {
	later := func(j *journal, _ nodepool.ClusterKey) time.Duration {
		if j.count(llm) == 1 {
			return time.Second
		}
		return 0
	}
	inPoolOf(t, func(nodepool.ClusterKey) bool { return false }, later, func(p *pool, j *journal) {
		p.Enqueue(llm)
		time.Sleep(time.Minute)
		if n := j.count(llm); n != 2 || workersOf(p) != 0 {
			t.Errorf("%d cycles, and %d workers left; want the one that was due, and none", n, workersOf(p))
		}
	})
}

func TestKeysEnqueuedBeforeTheStartAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan nodepool.ClusterKey, 1)
		p := newPool(func(nodepool.ClusterKey) bool { return true }, slog.New(slog.DiscardHandler))
		p.Enqueue(llm)
		go p.Run(ctx, func(_ context.Context, key nodepool.ClusterKey, _ bool) time.Duration { served <- key; return 0 })
		if key := <-served; key != llm {
			t.Errorf("served %v", key)
		}
		cancel()
	})
}

// atRest returns the n-th of many RayClusters at rest.
func atRest(n int) nodepool.ClusterKey {
	return nodepool.ClusterKey{Namespace: "rest", Name: fmt.Sprint(n)}
}

// cores is a machine's cores, on which cycles run in slices of half a millisecond, in the order in which they ask.
type cores chan struct{}

func (c cores) run(work time.Duration) {
	for ; work > 0; work -= slice {
		c <- struct{}{}
		time.Sleep(slice)
		<-c
	}
}

const slice = time.Millisecond / 2

// TestRayClustersAtRestDelayNobodyWhoMoves has a thousand RayClusters at rest whose cycles take more than two cores have.
func TestRayClustersAtRestDelayNobodyWhoMoves(t *testing.T) {
	var machine cores
	var mu sync.Mutex // guards what follows
	var running, most int
	var longest time.Duration
	reconcile := func(j *journal, key nodepool.ClusterKey) time.Duration {
		begun, rests := time.Now(), key != llm && j.count(key) > 1 // an event starts the first
		mu.Lock()
		if rests {
			running++
			most = max(most, running)
		}
		mu.Unlock()
		if rests || key == llm {
			machine.run(2 * time.Millisecond)
		}
		mu.Lock()
		defer mu.Unlock()
		if rests {
			running--
			return longPause
		}
		if key != llm {
			return longPause
		}
		longest = max(longest, time.Since(begun))
		return 100 * time.Millisecond
	}
	inPool(t, reconcile, func(p *pool, j *journal) {
		machine = make(cores, 2)
		const resting = 1000
		for n := range resting {
			p.Enqueue(atRest(n))
		}
		p.Enqueue(llm)
		time.Sleep(10 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if most != turnsAtOnce {
			t.Errorf("%d cycles after long pauses at once, want %d", most, turnsAtOnce)
		}
		if longest > 100*time.Millisecond {
			t.Errorf("a cycle of the RayCluster that moves took %v", longest)
		}
		counts := make([]int, resting)
		for n := range resting {
			counts[n] = j.count(atRest(n))
		}
		if fewest, most := slices.Min(counts), slices.Max(counts); fewest < most-3 {
			t.Errorf("RayClusters at rest had %d to %d cycles", fewest, most)
		}
	})
}

// TestHeadsThatDoNotAnswerKeepNoTurn has so many heads that hang that they would hold all turns for good.
func TestHeadsThatDoNotAnswerKeepNoTurn(t *testing.T) {
	reconcile := func(j *journal, key nodepool.ClusterKey) time.Duration {
		if key != llm && j.count(key) > 1 {
			time.Sleep(time.Hour)
		}
		return longPause
	}
	inPool(t, reconcile, func(p *pool, j *journal) {
		for n := range 2 * turnsAtOnce {
			p.Enqueue(atRest(n))
		}
		p.Enqueue(llm)
		time.Sleep(10 * time.Second)
		if n := j.count(llm); n < 15 {
			t.Errorf("%d cycles in 10 s, want about 20", n)
		}
	})
}

// TestAnEventDoesNotWaitForATurn has an event come while all turns are taken.
func TestAnEventDoesNotWaitForATurn(t *testing.T) {
	reconcile := func(*journal, nodepool.ClusterKey) time.Duration { return longPause }
	inPool(t, reconcile, func(p *pool, j *journal) {
		p.Enqueue(llm)
		time.Sleep(longPause / 2)
		for range turnsAtOnce {
			p.turns <- struct{}{}
		}
		time.Sleep(longPause)
		if n := j.count(llm); n != 1 {
			t.Fatalf("%d cycles without a turn, want the first alone", n)
		}
		p.Enqueue(llm)
		time.Sleep(time.Millisecond)
		if got, want := j.startedByTime(llm), []bool{false, false}; !slices.Equal(got, want) {
			t.Errorf("quiet: %v, want %v", got, want)
		}
	})
}

func never(*journal, nodepool.ClusterKey) time.Duration { return 0 }

func TestAStreamOfRequestsIsPlannedInSteps(t *testing.T) {
	inPool(t, never, func(p *pool, j *journal) {
		p.Enqueue(llm)
		time.Sleep(time.Second)
		for range 100 { // ten requests every 100 ms, for a second
			p.EnqueueForRequest(llm)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		times := j.at(llm)
		if len(times) < 11 || len(times) > 12 {
			t.Errorf("%d cycles, want the first, and one every %v", len(times), requestPause)
		}
		if last := times[len(times)-1]; last < 1990*time.Millisecond {
			t.Errorf("the last cycle, %v after the start, came before the last request", last)
		}
	})
}

func TestAPodDoesNotWaitForRequests(t *testing.T) {
	inPool(t, never, func(p *pool, j *journal) {
		p.Enqueue(llm)
		time.Sleep(time.Second)
		p.EnqueueForRequest(llm)
		time.Sleep(minPause + time.Millisecond)
		p.EnqueueForRequest(llm)
		p.Enqueue(llm)
		want := []time.Duration{0, time.Second, time.Second + minPause + time.Millisecond, time.Second + requestPause}
		time.Sleep(10 * time.Second)
		if diff := cmp.Diff(want, j.at(llm)); diff != "" {
			t.Errorf("cycles (-want +got): %s", diff)
		}
	})
}

func TestTheRequestThatStartsAWorkerBeginsTheSteps(t *testing.T) {
	inPool(t, never, func(p *pool, j *journal) {
		p.EnqueueForRequest(llm)
		time.Sleep(requestPause / 2)
		p.EnqueueForRequest(llm)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]time.Duration{0, requestPause}, j.at(llm)); diff != "" {
			t.Errorf("cycles (-want +got): %s", diff)
		}
	})
}
