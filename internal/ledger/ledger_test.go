package ledger_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/nodepool"
)

var (
	start = time.Date(2026, 3, 1, 10, 30, 0, 0, time.UTC)
	llm   = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}
)

func after(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// begun returns a ledger that knows the RayCluster llm.
func begun(limits ledger.Limits) *ledger.Ledger {
	l := ledger.New(limits)
	l.Observe(ledger.Observation{At: start, Cluster: llm})
	return l
}

func pod(cause ledger.Cause) ledger.Pod {
	return ledger.Pod{Account: ledger.Account{Group: "gpu", Owner: "RayJob/a", Cause: cause}, Part: 1, GPUs: 2, Hourly: 36}
}

func see(l *ledger.Ledger, at float64, pods ...ledger.Pod) {
	l.Observe(ledger.Observation{At: after(at), Cluster: llm, Pods: pods})
}

func sum(rows []ledger.Row) (total ledger.Amount) {
	for _, r := range rows {
		total = total.Plus(r.Amount)
	}
	return total
}

var roughly = cmpopts.EquateApprox(0, 1e-6)

func TestTimeBetweenObservationsCountsForWhatWasSeen(t *testing.T) {
	l := begun(ledger.Limits{})
	see(l, 4, pod(ledger.Starting))
	see(l, 40, pod(ledger.Used))
	idle := pod(ledger.Idle)
	idle.Why = "idle_timeout"
	see(l, 100, idle)
	see(l, 110)
	account := func(cause ledger.Cause, why string) ledger.Account {
		return ledger.Account{Group: "gpu", Owner: "RayJob/a", Cause: cause, Why: why}
	}
	want := []ledger.Row{
		{llm, account(ledger.Idle, "idle_timeout"), ledger.Amount{PodSeconds: 10, GPUSeconds: 20, Money: 0.1}},
		{llm, account(ledger.Starting, ""), ledger.Amount{PodSeconds: 36, GPUSeconds: 72, Money: 0.36}},
		{llm, account(ledger.Used, ""), ledger.Amount{PodSeconds: 60, GPUSeconds: 120, Money: 0.6}},
	}
	if diff := cmp.Diff(want, l.Rows(after(200)), roughly); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := l.Since(after(200)); !got.Equal(start) {
		t.Errorf("it counts since %v", got)
	}
}

func TestWhatPodsAddSinceTheLastObservationCountsInAnswers(t *testing.T) {
	l := begun(ledger.Limits{})
	see(l, 10, pod(ledger.Used))
	if got := sum(l.Rows(after(70))).PodSeconds; got != 60 {
		t.Errorf("%v pod-seconds after 60 s", got)
	}
	see(l, 20, pod(ledger.Used))
	if got := sum(l.Rows(after(70))).PodSeconds; got != 60 {
		t.Errorf("%v pod-seconds after another observation: time counts twice", got)
	}
	if got := sum(l.Rows(after(20 + ledger.Horizon.Seconds() + 1))).PodSeconds; got != 10 {
		t.Errorf("%v pod-seconds, although nobody has looked for longer than an observation holds", got)
	}
}

func TestATimeWithoutObservationsIsUnobserved(t *testing.T) {
	l := begun(ledger.Limits{})
	see(l, 10, pod(ledger.Used))
	see(l, 3610, pod(ledger.Used), pod(ledger.Used)) // one is new
	rows := l.Rows(after(3610))
	if len(rows) != 1 || rows[0].Cause != ledger.Unobserved || rows[0].PodSeconds != 3600 {
		t.Errorf("%+v", rows)
	}
}

func TestAClockThatIsSetBackCountsNothingTwice(t *testing.T) {
	l := begun(ledger.Limits{})
	see(l, 100, pod(ledger.Used))
	see(l, 160, pod(ledger.Used))
	see(l, 40, pod(ledger.Used))
	see(l, 170, pod(ledger.Used))
	if got := sum(l.Rows(after(170))).PodSeconds; got != 70 {
		t.Errorf("%v pod-seconds, want 70", got)
	}
	before := sum(l.Rows(after(86400 * 2))).PodSeconds
	see(l, 86400, pod(ledger.Used)) // a clock that is a day ahead
	see(l, 180, pod(ledger.Used))
	see(l, 240, pod(ledger.Used))
	if got := sum(l.Rows(after(240))).PodSeconds; got < before+60 {
		t.Errorf("%v pod-seconds are used after a clock was far ahead: nothing counts any more", got)
	}
}

// TestNothingCountsBeforeARayClusterIsObserved has a RayCluster whose pods another process has counted.
func TestNothingCountsBeforeARayClusterIsObserved(t *testing.T) {
	l := ledger.New(ledger.Limits{})
	if got := l.Since(after(90)); !got.Equal(after(90)) {
		t.Errorf("before it has observed anything, it counts since %v", got)
	}
	see(l, 100, pod(ledger.Used))
	see(l, 130, pod(ledger.Used))
	if got := sum(l.Rows(after(130))).PodSeconds; got != 30 || !l.Since(after(130)).Equal(after(100)) {
		t.Errorf("%v pod-seconds since %v", got, l.Since(after(130)))
	}
	l.End(llm, after(140)) // it moves to another process, and comes back
	see(l, 200, pod(ledger.Used))
	see(l, 205, pod(ledger.Used))
	if got := sum(l.Rows(after(205))).PodSeconds; got != 45 {
		t.Errorf("%v pod-seconds, want 45 without those of the other process", got)
	}
}

func TestAccountsBeyondTheLimitAreAddedUp(t *testing.T) {
	l := begun(ledger.Limits{Accounts: 4})
	var pods []ledger.Pod
	for i := range 20 {
		p := pod(ledger.Used)
		p.Owner = fmt.Sprint("owner-", i)
		pods = append(pods, p)
	}
	see(l, 0, pods...)
	see(l, 100, pods...)
	rows := l.Rows(after(100))
	if len(rows) > 5 || math.Abs(sum(rows).PodSeconds-2000) > 1e-6 {
		t.Errorf("%d rows have %v pod-seconds", len(rows), sum(rows).PodSeconds)
	}
}

// end lets a RayCluster use one pod for ten seconds, and ends it.
func end(l *ledger.Ledger, key nodepool.ClusterKey, at float64) {
	p := pod(ledger.Used)
	p.Owner, p.Why = "RayJob/"+key.Name, "why"
	l.Observe(ledger.Observation{At: after(at), Cluster: key, Pods: []ledger.Pod{p}})
	l.End(key, after(at+10))
	l.End(key, after(at+10))
}

// TestTheRayClustersThatEndedLastAreKept ends 100 RayClusters, as of jobs of CI.
func TestTheRayClustersThatEndedLastAreKept(t *testing.T) {
	l := begun(ledger.Limits{Ended: 10})
	run := func(i int) nodepool.ClusterKey {
		return nodepool.ClusterKey{Namespace: "ci", Name: fmt.Sprint("c-", i)}
	}
	for i := range 100 {
		if i == 91 { // the one that ended first, of those that are kept, comes back
			l.Observe(ledger.Observation{At: after(910), Cluster: run(81)})
		}
		end(l, run(i), 10*float64(i))
		see(l, 10*float64(i))
	}
	if len(l.Counters(run(0))) != 0 || len(l.Counters(run(99))) != 1 || len(l.Counters(run(81))) != 1 {
		t.Error("the RayClusters that ended last are not kept, or one that exists is not")
	}
	if rows := l.Rows(after(1010)); len(rows) != 11 || math.Abs(sum(rows).PodSeconds-110) > 1e-6 {
		t.Errorf("%d rows have %v pod-seconds", len(rows), sum(rows).PodSeconds)
	}
}

func TestIdlePartsFormAStreak(t *testing.T) {
	l := begun(ledger.Limits{})
	idle := func(cause ledger.Cause, gpus float64) ledger.Pod {
		p := pod(cause)
		p.Part, p.GPUs, p.Hourly, p.Why = gpus/8, gpus, gpus, "no_demand"
		return p
	}
	see(l, 0, idle(ledger.Used, 8))
	if s := l.Idle(llm, after(1)); !s.Since.IsZero() || s.AllGPUs != 8 {
		t.Errorf("nothing is idle, and %+v", s)
	}
	see(l, 60, idle(ledger.Used, 4), idle(ledger.Idle, 4))
	see(l, 240, idle(ledger.Used, 6), idle(ledger.Idle, 2))
	want := ledger.Streak{Since: after(60), Money: 4*180.0/3600 + 2*60.0/3600, GPUs: 2, Pods: 0.25, AllGPUs: 8, AllPods: 1, Hourly: 2,
		Group: "gpu", Why: "no_demand", Owner: "RayJob/a"}
	if diff := cmp.Diff(want, l.Idle(llm, after(300)), roughly); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	see(l, 310, idle(ledger.Used, 8))
	if s := l.Idle(llm, after(311)); !s.Since.IsZero() || s.Money != 0 {
		t.Errorf("all is used again, and %+v", s)
	}
}

func BenchmarkObserve(b *testing.B) {
	l := begun(ledger.Limits{})
	var pods []ledger.Pod
	for i := range 50 {
		p := pod([]ledger.Cause{ledger.Used, ledger.Idle}[i%2])
		pods = append(pods, p)
	}
	b.ReportAllocs()
	at := 0.0
	for b.Loop() {
		at++
		see(l, at, pods...)
	}
}
