package cycles

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// atRest returns the n-th of many RayClusters at rest.
func atRest(n int) nodepool.ClusterKey {
	return nodepool.ClusterKey{Namespace: "rest", Name: fmt.Sprint(n)}
}

// TestRayClustersAtRestDelayNobodyWhoMoves has more RayClusters at rest due at once than have turns, each for a while.
func TestRayClustersAtRestDelayNobodyWhoMoves(t *testing.T) {
	running, most := map[nodepool.ClusterKey]bool{}, 0
	reconcile := func(j *journal, key nodepool.ClusterKey) time.Duration {
		if key == llm {
			return 100 * time.Millisecond
		}
		first := j.count(key) == 1 // an event started it
		j.mu.Lock()
		running[key] = !first
		busy := 0
		for _, is := range running {
			if is {
				busy++
			}
		}
		most = max(most, busy)
		j.mu.Unlock()
		time.Sleep(turnLasts / 2)
		j.mu.Lock()
		running[key] = false
		j.mu.Unlock()
		return longPause
	}
	inPool(t, reconcile, func(p *Pool, j *journal) {
		const resting = 10 * turnsAtOnce
		for n := range resting {
			p.Enqueue(atRest(n))
		}
		p.Enqueue(llm)
		time.Sleep(10 * time.Second)
		if most != turnsAtOnce {
			t.Errorf("%d cycles after long pauses at once, want %d", most, turnsAtOnce)
		}
		if n := j.count(llm); n < 90 {
			t.Errorf("%d cycles of the RayCluster that moves in 10 s, want about 100", n)
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
	inPool(t, reconcile, func(p *Pool, j *journal) {
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
	inPool(t, reconcile, func(p *Pool, j *journal) {
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
