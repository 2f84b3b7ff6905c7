package kube

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

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
