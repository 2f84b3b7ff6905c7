package kube

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
)

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
		synctest.Wait()
		want := []time.Duration{0, time.Second, time.Second + minPause + time.Millisecond}
		time.Sleep(10 * time.Second) // what was to come later has come already
		if diff := cmp.Diff(want, j.at(llm)); diff != "" {
			t.Errorf("cycles (-want +got): %s", diff)
		}
	})
}

func TestWhatIsOnlyShownIsShownWithinASecond(t *testing.T) {
	inPool(t, never, func(p *pool, j *journal) {
		p.EnqueueForStatus(llm) // of a cluster that has no worker there is nothing to show
		p.Enqueue(llm)
		time.Sleep(10 * time.Second)
		for range 5 {
			p.EnqueueForStatus(llm)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		p.EnqueueForStatus(llm)
		p.EnqueueForRequest(llm) // comes earlier, and shows it too
		time.Sleep(5 * time.Second)
		times := j.at(llm)
		want := []time.Duration{0, 10*time.Second + statusDelay, 15*time.Second + 50*time.Millisecond}
		if !slices.Equal(want, times) {
			t.Errorf("cycles at %v, want %v", times, want)
		}
	})
}

func TestWhatIsShownDoesNotDelayTheNextRequest(t *testing.T) {
	inPool(t, never, func(p *pool, j *journal) {
		p.Enqueue(llm)
		time.Sleep(time.Second)
		p.EnqueueForStatus(llm)
		time.Sleep(statusDelay + requestPause/2)
		p.EnqueueForRequest(llm)
		time.Sleep(time.Minute)
		want := []time.Duration{0, time.Second + statusDelay, time.Second + statusDelay + requestPause/2}
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

// Between a worker's last look and its end a caller may ask for an object that does not exist, and gets that answer.
func TestAWorkerThatIsToRunLaterDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(func(nodepool.ClusterKey) bool { return false }, func(nodepool.ClusterKey, any) {})
		worker := newTrigger()
		worker.requestedAt = time.Now()
		p.ctx, p.triggers[llm] = t.Context(), worker
		p.EnqueueForRequest(llm)
		if p.retire(llm, worker) || p.triggers[llm] == nil {
			t.Error("the worker has ended, and the cycle that was asked for with it")
		}
		worker.disarm()
		if !p.retire(llm, worker) {
			t.Error("a worker of what is gone stays for nothing")
		}
	})
}
