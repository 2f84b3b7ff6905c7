package ledger_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

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
	l := ledger.New(start, limits)
	l.Observe(ledger.Observation{At: start, Cluster: llm})
	l.Restore(llm, nil)
	l.Observe(ledger.Observation{At: start, Cluster: llm})
	return l
}

func pod(cause ledger.Cause, created float64) ledger.Pod {
	return ledger.Pod{Account: ledger.Account{Group: "gpu", Owner: "RayJob/a", Cause: cause}, Part: 1, GPUs: 2, Hourly: 36,
		Created: after(created), Bound: after(created)}
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
	see(l, 10, pod(ledger.Starting, 4))
	see(l, 40, pod(ledger.Used, 4))
	idle := pod(ledger.Idle, 4)
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
	if diff := cmp.Diff(want, l.Rows(start, after(200)), roughly); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := l.Totals(llm)[ledger.Used]; math.Abs(got.Money-0.6) > 1e-9 {
		t.Errorf("totals %+v", got)
	}
}

func TestWhatPodsAddSinceTheLastObservationCountsInAnswers(t *testing.T) {
	l := begun(ledger.Limits{})
	see(l, 10, pod(ledger.Used, 10))
	if got := sum(l.Rows(start, after(70))).PodSeconds; got != 60 {
		t.Errorf("%v pod-seconds after 60 s", got)
	}
	see(l, 20, pod(ledger.Used, 10))
	if got := sum(l.Rows(start, after(70))).PodSeconds; got != 60 {
		t.Errorf("%v pod-seconds after another observation: time counts twice", got)
	}
	if got := sum(l.Rows(start, after(20+ledger.Horizon.Seconds()+1))).PodSeconds; got != 10 {
		t.Errorf("%v pod-seconds, although nobody has looked for longer than an observation holds", got)
	}
}

func TestAPodCostsMoneyFromItsNodeOn(t *testing.T) {
	l := begun(ledger.Limits{})
	waits := ledger.Pod{Account: ledger.Account{Group: "gpu", Cause: ledger.Starting}, Part: 1, Created: after(5)}
	see(l, 5, waits)
	runs := pod(ledger.Starting, 5)
	runs.Owner, runs.Bound = "", after(25)
	see(l, 30, runs)
	want := ledger.Amount{PodSeconds: 25, GPUSeconds: 10, Money: 0.05}
	if diff := cmp.Diff(want, sum(l.Rows(start, after(30))), roughly); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestATimeWithoutObservationsIsUnobserved(t *testing.T) {
	l := begun(ledger.Limits{})
	see(l, 10, pod(ledger.Used, 10))
	see(l, 3610, pod(ledger.Used, 10), pod(ledger.Used, 3000)) // one is new
	rows := l.Rows(start, after(3610))
	if len(rows) != 1 || rows[0].Cause != ledger.Unobserved || math.Abs(rows[0].PodSeconds-(3600+610)) > 1e-6 {
		t.Errorf("%+v", rows)
	}
}

func TestAClockThatIsSetBackCountsNothingTwice(t *testing.T) {
	l := begun(ledger.Limits{})
	see(l, 100, pod(ledger.Used, 100))
	see(l, 160, pod(ledger.Used, 100))
	see(l, 40, pod(ledger.Used, 100))
	see(l, 170, pod(ledger.Used, 100))
	if got := sum(l.Rows(start, after(170))).PodSeconds; got != 70 {
		t.Errorf("%v pod-seconds, want 70", got)
	}
	before := sum(l.Rows(start, after(86400*2))).PodSeconds
	see(l, 86400, pod(ledger.Used, 100)) // a clock that is a day ahead
	see(l, 180, pod(ledger.Used, 100))
	see(l, 240, pod(ledger.Used, 100))
	if got := l.Totals(llm)[ledger.Used].PodSeconds; got < before+60 {
		t.Errorf("%v pod-seconds are used after a clock was far ahead: nothing counts any more", got)
	}
}

func TestARayClusterThatNobodySeesAnyMoreIsForgottenInTheEnd(t *testing.T) {
	l := begun(ledger.Limits{})
	see(l, 60, pod(ledger.Used, 1))
	saved := l.Save(llm, after(60))
	next := ledger.New(after(3600), ledger.Limits{})
	next.Restore(llm, saved) // it was deleted while no process ran
	if gone := next.Expire(after(3600)); len(gone) != 0 || len(next.Rows(start, after(3600))) != 1 {
		t.Errorf("%v is dropped although its costs are recent", gone)
	}
	if gone := next.Expire(after(40 * 86400)); !slices.Equal(gone, []nodepool.ClusterKey{llm}) {
		t.Errorf("%v is dropped after 40 days", gone)
	}
	early := ledger.New(start, ledger.Limits{})
	early.Observe(ledger.Observation{At: start, Cluster: llm})
	early.Forget(llm, after(1))
	if waiting := early.Waiting(); len(waiting) != 0 {
		t.Errorf("%v waits although it was deleted", waiting)
	}
}

func TestAnAnswerCoversTheTimeThatIsAsked(t *testing.T) {
	l := begun(ledger.Limits{})
	see(l, 0, pod(ledger.Used, 0))
	for at := 60.0; at <= 4*3600; at += 60 { // from 10:30 to 14:30
		see(l, at, pod(ledger.Used, 0))
	}
	now := after(4 * 3600)
	for _, c := range []struct{ since, want float64 }{{3600, 3600}, {7200, 7200}, {4 * 3600, 4 * 3600}, {10 * 3600, 4 * 3600}, {900, 900}} {
		got := sum(l.Rows(now.Add(-time.Duration(c.since)*time.Second), now)).PodSeconds
		if math.Abs(got-c.want) > 1 {
			t.Errorf("the last %v s have %v pod-seconds, want %v", c.since, got, c.want)
		}
	}
}

func TestOldHoursBecomeDaysAndOlderDaysAreDropped(t *testing.T) {
	l := begun(ledger.Limits{Hours: 4, Days: 3})
	see(l, 0, pod(ledger.Used, 0))
	const days = 5
	for at := 240.0; at <= days*86400; at += 240 {
		see(l, at, pod(ledger.Used, 0))
	}
	saved := l.Save(llm, after(days*86400))
	if len(saved.Lines) != 1 {
		t.Fatalf("%d lines", len(saved.Lines))
	}
	if n := len(saved.Lines[0].Buckets); n > 4+4+1 {
		t.Errorf("%d buckets, want 5 of an hour and 4 of a day at most", n)
	}
	got, all := sum(l.Rows(start, after(days*86400))).PodSeconds, sum(l.Rows(after(3*86400), after(days*86400))).PodSeconds
	if got < 3*86400 || got > 4*86400 || math.Abs(all-2*86400) > 86400/2 {
		t.Errorf("%v pod-seconds are kept, %v of the last two days", got, all)
	}
	l.Forget(llm, after(days*86400))
	if gone := l.Expire(after(days*86400 + 3600)); len(gone) != 0 {
		t.Errorf("%v is dropped although its costs are recent", gone)
	}
	if gone := l.Expire(after((days + 4) * 86400)); !slices.Equal(gone, []nodepool.ClusterKey{llm}) {
		t.Errorf("%v is dropped after four days", gone)
	}
}

func TestWhatIsBeyondTheLimitsIsAddedUp(t *testing.T) {
	l := begun(ledger.Limits{Accounts: 4, Clusters: 10})
	var pods []ledger.Pod
	for i := range 20 {
		p := pod(ledger.Used, 0)
		p.Owner = fmt.Sprint("owner-", i)
		pods = append(pods, p)
	}
	see(l, 0, pods...)
	see(l, 100, pods...)
	rows := l.Rows(start, after(100))
	if len(rows) > 5 || math.Abs(sum(rows).PodSeconds-2000) > 1e-6 {
		t.Errorf("%d rows have %v pod-seconds", len(rows), sum(rows).PodSeconds)
	}
	for i := range 40 {
		key := nodepool.ClusterKey{Namespace: "ci", Name: fmt.Sprint("run-", i)}
		l.Observe(ledger.Observation{At: after(100), Cluster: key})
		l.Restore(key, nil)
		p := pod(ledger.Used, 100)
		l.Observe(ledger.Observation{At: after(100), Cluster: key, Pods: []ledger.Pod{p}})
		l.Forget(key, after(110+float64(i)))
	}
	if used := l.Used(); used < 0.9 || used > 1 {
		t.Errorf("%v of the RayClusters that a ledger keeps are in use, want nearly all", used)
	}
	clusters := map[nodepool.ClusterKey]bool{}
	total := 0.0
	for _, r := range l.Rows(start, after(200)) {
		if r.Cluster.Namespace == "ci" {
			clusters[r.Cluster] = true
			total += r.PodSeconds
		}
	}
	if want := 40*10 + 39*40/2.0; len(clusters) > 10 || math.Abs(total-want) > 1e-6 || !clusters[nodepool.ClusterKey{Namespace: "ci", Name: ledger.Other}] {
		t.Errorf("%d RayClusters have %v pod-seconds, want %v", len(clusters), total, want)
	}
}

// end lets a RayCluster use one pod for ten seconds, and ends it.
func end(l *ledger.Ledger, key nodepool.ClusterKey, at float64) {
	l.Observe(ledger.Observation{At: after(at), Cluster: key})
	l.Restore(key, nil)
	p := pod(ledger.Used, at)
	p.Owner = "RayJob/" + key.Name
	l.Observe(ledger.Observation{At: after(at), Cluster: key, Pods: []ledger.Pod{p}})
	l.Forget(key, after(at+10))
}

// TestNamespacesAreBoundedToo has 10,000 RayClusters, each in a namespace of its own, as of jobs of CI. It takes a
// second; with a look at all of them for each new one, it takes ten times as long.
func TestNamespacesAreBoundedToo(t *testing.T) {
	const runs = 10_000
	l := begun(ledger.Limits{})
	for i := range runs {
		end(l, nodepool.ClusterKey{Namespace: fmt.Sprint("run-", i), Name: fmt.Sprint("c-", i)}, float64(i))
		see(l, float64(i))
	}
	clusters := map[nodepool.ClusterKey]ledger.Amount{}
	rows := l.Rows(start, after(runs+20))
	for _, r := range rows {
		clusters[r.Cluster] = clusters[r.Cluster].Plus(r.Amount)
	}
	if len(clusters) > 4000 || len(clusters) < 3500 || math.Abs(sum(rows).PodSeconds-10*runs) > 1e-3 {
		t.Errorf("%d RayClusters have %v pod-seconds, want %v", len(clusters), sum(rows).PodSeconds, 10*runs)
	}
	all := nodepool.ClusterKey{Namespace: ledger.Other, Name: ledger.Other}
	if want := 10 * float64(runs+1-len(clusters)); math.Abs(clusters[all].PodSeconds-want) > 1e-3 {
		t.Errorf("%v have %v pod-seconds, want %v", all, clusters[all].PodSeconds, want)
	}
	newest := nodepool.ClusterKey{Namespace: fmt.Sprint("run-", runs-1), Name: fmt.Sprint("c-", runs-1)}
	if clusters[newest].PodSeconds != 10 {
		t.Errorf("%v has %v", newest, clusters[newest])
	}
	for _, r := range rows {
		if r.Cluster == all && (r.Account != ledger.Account{Group: ledger.Other, Owner: ledger.Other, Cause: ledger.Used}) {
			t.Errorf("names of several namespaces are one: %+v", r)
		}
	}
	next := ledger.New(after(runs+20), ledger.Limits{})
	for key := range clusters {
		next.Restore(key, l.Save(key, after(runs+20)))
	}
	if got := sum(next.Rows(start, after(runs+20))).PodSeconds; math.Abs(got-10*runs) > 1 {
		t.Errorf("the next process has %v pod-seconds, want %v", got, 10*runs)
	}
}

// TestWhateverIsAddedUpTheSumStays ends RayClusters in random namespaces, saves what has changed now and then, and goes
// on from that.
func TestWhateverIsAddedUpTheSumStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := ledger.Limits{Clusters: rapid.IntRange(1, 30).Draw(t, "limit")}
		namespaces := rapid.IntRange(1, 60).Draw(t, "namespaces")
		l, stored, at, ended := begun(limits), map[nodepool.ClusterKey]*ledger.Saved{}, 0.0, 0
		var saved int64
		save := func() {
			for _, key := range l.Expire(after(at)) {
				delete(stored, key)
			}
			var changed []nodepool.ClusterKey
			changed, saved = l.Changed(saved)
			for _, key := range changed {
				stored[key] = l.Save(key, after(at))
			}
		}
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			at += 10
			switch rapid.IntRange(0, 19).Draw(t, "step") {
			case 0:
				save()
			case 1:
				save()
				l, saved = ledger.New(after(at), limits), 0
				for key, s := range stored {
					l.Restore(key, s)
				}
			default:
				namespace := rapid.IntRange(1, namespaces).Draw(t, "namespace")
				key := nodepool.ClusterKey{Namespace: fmt.Sprint("ns-", namespace), Name: fmt.Sprint("c-", ended)}
				end(l, key, at)
				ended++
			}
		}
		save()
		clusters := map[nodepool.ClusterKey]bool{}
		rows := l.Rows(start, after(at+20))
		for _, r := range rows {
			clusters[r.Cluster] = true
		}
		if got := sum(rows).PodSeconds; math.Abs(got-10*float64(ended)) > 0.01*float64(ended) {
			t.Errorf("%d RayClusters of 10 s have %v s", ended, got)
		}
		if most := max(limits.Clusters, 3); len(clusters) > most || len(stored) > most+1 { // llm has cost nothing
			t.Errorf("%d RayClusters are kept apart, and %d saved, the limit is %d", len(clusters), len(stored), limits.Clusters)
		}
	})
}

// TestANamespaceIsKeptApartWhileThereIsRoom has a namespace in which many end, and a few in which one ended before.
func TestANamespaceIsKeptApartWhileThereIsRoom(t *testing.T) {
	l := begun(ledger.Limits{Clusters: 100})
	for i := range 20 {
		end(l, nodepool.ClusterKey{Namespace: fmt.Sprint("team-", i), Name: "c"}, float64(i))
	}
	for i := range 1000 {
		end(l, nodepool.ClusterKey{Namespace: "ci", Name: fmt.Sprint("run-", i)}, 100+float64(i))
	}
	namespaces, clusters := map[string]float64{}, map[nodepool.ClusterKey]bool{}
	for _, r := range l.Rows(start, after(2000)) {
		namespaces[r.Cluster.Namespace] += r.PodSeconds
		clusters[r.Cluster] = true
	}
	if len(namespaces) != 21 || math.Abs(namespaces["ci"]-10*1000) > 1e-3 || math.Abs(namespaces["team-0"]-10) > 1e-6 || len(clusters) > 100 {
		t.Errorf("%d RayClusters, namespaces %v", len(clusters), namespaces)
	}
}

// TestRayClustersThatExistAreKeptApart has more of them than the limit, of which an earlier process knew.
func TestRayClustersThatExistAreKeptApart(t *testing.T) {
	key := func(i int) nodepool.ClusterKey {
		return nodepool.ClusterKey{Namespace: fmt.Sprint("ns-", i), Name: "c"}
	}
	warm := func(l *ledger.Ledger, i int, at float64) {
		l.Observe(ledger.Observation{At: after(at), Cluster: key(i), Pods: []ledger.Pod{pod(ledger.Warm, 0)}})
	}
	first := begun(ledger.Limits{Clusters: 20})
	for i := range 100 {
		warm(first, i, 0)
		first.Restore(key(i), nil)
		warm(first, i, 0)
		warm(first, i, 100)
	}
	next := ledger.New(after(200), ledger.Limits{Clusters: 20})
	warm(next, 99, 200)
	for i := range 100 {
		next.Restore(key(i), first.Save(key(i), after(100)))
	}
	for i := range 50 {
		end(next, nodepool.ClusterKey{Namespace: fmt.Sprint("run-", i), Name: "r"}, 200+float64(i))
	}
	next.Expire(after(300))
	for i := range 100 {
		if got := next.MoneySince(key(i), ledger.Warm, start); math.Abs(got-1) > 1e-3 {
			t.Fatalf("before its first observation, %v had cost %v, want 1", key(i), got)
		}
	}
	clusters := map[nodepool.ClusterKey]bool{}
	rows := next.Rows(start, after(300))
	for _, r := range rows {
		clusters[r.Cluster] = true
	}
	if len(clusters) > 100+10+2 || math.Abs(sum(rows).PodSeconds-(100*100+50*10)) > 1 {
		t.Errorf("%d RayClusters have %v pod-seconds", len(clusters), sum(rows).PodSeconds)
	}
	if used := next.Used(); used != 1 {
		t.Errorf("%v of the bound is in use, want all and no more", used)
	}
	for range 2 { // those that have not come within an hour have ended
		next.Observe(ledger.Observation{At: after(200 + 3601), Cluster: key(99)})
		next.Expire(after(200 + 3601))
	}
	clusters = map[nodepool.ClusterKey]bool{}
	rows = next.Rows(start, after(200+3601))
	for _, r := range rows {
		clusters[r.Cluster] = true
	}
	if len(clusters) > 20 {
		t.Errorf("%d RayClusters are kept apart after an hour", len(clusters))
	}
}

// TestAReplicaThatHasWaitedForLongKeepsRestoredRayClusters until it has observed them, when it leads.
func TestAReplicaThatHasWaitedForLongKeepsRestoredRayClusters(t *testing.T) {
	key := func(i int) nodepool.ClusterKey {
		return nodepool.ClusterKey{Namespace: "ml", Name: fmt.Sprint("c-", i)}
	}
	const existing, waited = 50, 7200
	first := begun(ledger.Limits{Clusters: 40})
	next := ledger.New(start, ledger.Limits{Clusters: 40})
	for i := range existing {
		for _, seconds := range []float64{waited - 200, waited - 100, waited} {
			first.Observe(ledger.Observation{At: after(seconds), Cluster: key(i), Pods: []ledger.Pod{pod(ledger.Used, 10)}})
			first.Restore(key(i), nil)
		}
		next.Restore(key(i), first.Save(key(i), after(waited)))
	}
	next.Expire(after(waited))
	next.Observe(ledger.Observation{At: after(waited), Cluster: key(existing)})
	kept := map[nodepool.ClusterKey]bool{}
	for _, r := range next.Rows(start, after(waited)) {
		kept[r.Cluster] = true
	}
	for i := range existing {
		if !kept[key(i)] {
			t.Errorf("%v is not kept by itself any more", key(i))
		}
	}
}

// BenchmarkNewRayClusters observes 1,000 RayClusters beside 20,000, under a limit that these exceed and under none. A
// walk over all of them for each new one would show.
func BenchmarkNewRayClusters(b *testing.B) {
	const existing, more = 20_000, 1000
	for _, limit := range []int{4000, 1_000_000} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				l := begun(ledger.Limits{Clusters: limit})
				for i := range existing + more {
					if i == existing {
						b.StartTimer()
					}
					key := nodepool.ClusterKey{Namespace: "ml", Name: fmt.Sprint("c-", i)}
					l.Observe(ledger.Observation{At: start, Cluster: key})
				}
			}
		})
	}
}

func TestWhatIsAddedUpInOtherIsNoMoreSavedByItself(t *testing.T) {
	l := begun(ledger.Limits{Clusters: 10})
	run := func(i int) nodepool.ClusterKey {
		return nodepool.ClusterKey{Namespace: "ci", Name: fmt.Sprintf("run-%02d", i)}
	}
	for i := range 12 {
		end(l, run(i), float64(i))
	}
	if l.Save(run(0), after(20)) != nil || l.Save(nodepool.ClusterKey{Namespace: "ci", Name: ledger.Other}, after(20)) == nil {
		t.Error("the oldest is not in the Other of its namespace")
	}
	l.Observe(ledger.Observation{At: after(20), Cluster: run(1)}) // it is back
	dropped := l.Expire(after(21))
	if !slices.Contains(dropped, run(0)) || slices.Contains(dropped, run(1)) || slices.Contains(dropped, run(11)) {
		t.Errorf("dropped is %v", dropped)
	}
	if again := l.Expire(after(22)); len(again) != 0 {
		t.Errorf("dropped again is %v", again)
	}
}

func TestTheLatestJobsAreKeptApart(t *testing.T) {
	l := begun(ledger.Limits{Accounts: 12})
	for i := range 30 {
		p := pod(ledger.Used, 0)
		p.Job = fmt.Sprintf("job-%02d", i)
		see(l, float64(i)*100, p)
	}
	see(l, 3000)
	saved := l.Save(llm, after(3000))
	next := ledger.New(after(3000), ledger.Limits{Accounts: 12})
	next.Restore(llm, saved)
	for what, l := range map[string]*ledger.Ledger{"it": l, "the next process": next} {
		of := map[string]float64{}
		for _, r := range l.Rows(start, after(3000)) {
			of[r.Job] = r.PodSeconds
		}
		if len(of) != 7 || math.Abs(of["job-29"]-100) > 0.1 || math.Abs(of["job-24"]-100) > 0.1 || math.Abs(of[ledger.Other]-2400) > 1 {
			t.Errorf("%s has %v", what, of)
		}
	}
}

func TestIdlePartsFormAStreak(t *testing.T) {
	l := begun(ledger.Limits{})
	idle := func(cause ledger.Cause, gpus float64) ledger.Pod {
		p := pod(cause, 0)
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

func TestASavedLedgerIsCheckedAndMadeCoarser(t *testing.T) {
	l := begun(ledger.Limits{})
	for i := range 300 {
		p, q := pod(ledger.Used, 0), pod(ledger.Idle, 0)
		q.Group = "cpu"
		see(l, float64(i)*240, p, q)
	}
	saved := l.Save(llm, after(300*240))
	total := func(s *ledger.Saved) (n int, pods float64) {
		for _, line := range s.Lines {
			n += len(line.Buckets)
			for _, b := range line.Buckets {
				pods += b[2]
			}
		}
		return n, pods
	}
	n, want := total(saved)
	for steps := 0; ; steps++ {
		coarse, smaller := saved.Coarser()
		if !smaller {
			if steps < 3 || n != 2 { // of used and idle
				t.Errorf("%d buckets after %d steps", n, steps)
			}
			break
		}
		fewer, pods := total(coarse)
		if fewer >= n || math.Abs(pods-want) > 0.1 {
			t.Fatalf("%d buckets with %v pod-seconds became %d with %v", n, want, fewer, pods)
		}
		saved, n = coarse, fewer
	}
	for text, want := range map[string]string{
		`{"v":2}`:                         "version 2: want 1",
		`{"v":1,"lines":[{"c":"lunch"}]}`: `lines[0].c: unknown cause "lunch"`,
		`{"v":1,"lines":[{"c":"used","b":[[1,1,-5,0,0,0]]}]}`: "lines[0].b: -5: want numbers from 0 on",
		`{"v":1,"until":-1}`: "until: want a time",
		`{"v":1,"until":5,"lines":[{"c":"used","b":[[1,1,5]]}]}`: "",
	} {
		var s ledger.Saved
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		if err := s.Check(); fmt.Sprint(err) != want && (err != nil || want != "") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// life is one pod of a random history: when it was created, got its node and ended, and when its cause changes.
type life struct {
	created, bound, ended float64
	gpus, hourly          float64
	head                  bool
	changes               []float64
}

// at returns the parts of the pod at a moment.
func (p *life) at(now float64) (parts []ledger.Pod) {
	if now < p.created || now >= p.ended {
		return nil
	}
	i := 0
	for i < len(p.changes) && p.changes[i] <= now {
		i++
	}
	one := ledger.Pod{Account: ledger.Account{Group: "gpu", Owner: "RayJob/a", Cause: ledger.Starting}, Part: 1, Created: after(p.created)}
	if now < p.bound {
		return []ledger.Pod{one}
	}
	one.Bound, one.GPUs, one.Hourly = after(p.bound), p.gpus, p.hourly
	if p.head {
		one.Group, one.Cause = ledger.HeadGroup, ledger.Head
		return []ledger.Pod{one}
	}
	switch i % 4 {
	case 1:
		one.Cause = ledger.Used
	case 2: // a part is used
		used, idle := one, one
		used.Cause, idle.Cause, idle.Why = ledger.Used, ledger.Idle, "no_demand"
		used.Part, used.GPUs, used.Hourly = 0.25, p.gpus/4, p.hourly/4
		idle.Part, idle.GPUs, idle.Hourly = 0.75, p.gpus*3/4, p.hourly*3/4
		return []ledger.Pod{used, idle}
	case 3:
		one.Cause, one.Why = ledger.Idle, "idle_timeout"
	}
	return []ledger.Pod{one}
}

// integral is what the pod really took between two moments.
func (p *life) integral(from, to float64) ledger.Amount {
	exists := max(min(p.ended, to)-max(p.created, from), 0)
	runs := max(min(p.ended, to)-max(p.bound, from), 0)
	return ledger.Amount{PodSeconds: exists, GPUSeconds: runs * p.gpus, Money: runs * p.hourly / 3600}
}

// TestTheCausesAddUpToTheIntegralOverAllPods runs random histories of pods past a ledger that looks with a delay after
// each event, is saved now and then, and dies and continues from what was saved. Whatever happens, the sum over all
// causes is the integral over all pods within 1 %. Only one part is known to be missing: the time of pods that ended
// while nobody looked, since the moment that was saved last.
func TestTheCausesAddUpToTheIntegralOverAllPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const span = 6 * 3600.0
		var lives []life
		var events []float64
		for range rapid.IntRange(1, 12).Draw(t, "pods") {
			p := life{created: rapid.Float64Range(0, span*0.8).Draw(t, "created"), gpus: float64(rapid.IntRange(0, 8).Draw(t, "gpus")),
				hourly: rapid.Float64Range(0, 100).Draw(t, "hourly"), head: rapid.IntRange(0, 5).Draw(t, "head") == 0}
			p.bound = p.created + rapid.Float64Range(0, 600).Draw(t, "waits")
			p.ended = p.created + rapid.Float64Range(120, span).Draw(t, "lives")
			events = append(events, p.created, p.bound, p.ended)
			for range rapid.IntRange(0, 6).Draw(t, "changes") {
				p.changes = append(p.changes, rapid.Float64Range(p.bound, span).Draw(t, "change"))
			}
			slices.Sort(p.changes)
			events = append(events, p.changes...)
			lives = append(lives, p)
		}
		for at := 30.0; at < span; at += 30 { // a cycle at rest
			events = append(events, at)
		}
		events = append(events, span)
		events = slices.DeleteFunc(events, func(at float64) bool { return at > span })
		slices.Sort(events)
		delay := rapid.Float64Range(0, 0.2).Draw(t, "delay")
		type outage struct{ from, to float64 }
		var outages []outage
		for range rapid.IntRange(0, 3).Draw(t, "outages") {
			from := rapid.Float64Range(0, span*0.9).Draw(t, "dies")
			outages = append(outages, outage{from, from + rapid.Float64Range(1, 3600).Draw(t, "for")})
		}
		saveEvery := rapid.Float64Range(1, 900).Draw(t, "saves")

		l := begun(ledger.Limits{})
		var saved []byte
		var until, nextSave float64 // what is saved is complete until then
		type gap struct{ from, to float64 }
		var gaps []gap
		dead := false
		save := func(at float64) {
			s := l.Save(llm, after(at))
			if s == nil {
				return
			}
			saved, _ = json.Marshal(s)
			until = at
		}
		for _, event := range events {
			at := event + delay
			down := slices.ContainsFunc(outages, func(o outage) bool { return at >= o.from && at < o.to })
			if down {
				dead = true
				continue
			}
			if dead {
				dead = false
				if saved == nil { // it died before it had seen anything
					l = ledger.New(start, ledger.Limits{})
					l.Observe(ledger.Observation{At: start, Cluster: llm})
					l.Restore(llm, nil)
				} else {
					l = ledger.New(after(at), ledger.Limits{})
					l.Observe(ledger.Observation{At: after(at), Cluster: llm})
					var s ledger.Saved
					if err := json.Unmarshal(saved, &s); err != nil || s.Check() != nil {
						t.Fatal(err, s.Check())
					}
					l.Restore(llm, &s)
				}
				gaps = append(gaps, gap{until, event})
			}
			var pods []ledger.Pod
			for i := range lives {
				pods = append(pods, lives[i].at(event)...)
			}
			l.Observe(ledger.Observation{At: after(at), Cluster: llm, Pods: pods})
			if at >= nextSave {
				save(at)
				nextSave = at + saveEvery
			}
		}
		if dead {
			t.Skip("it ends dead")
		}
		now := span + delay
		var want ledger.Amount
		for i := range lives {
			p := &lives[i]
			all := p.integral(0, now)
			for _, g := range slices.Backward(gaps) { // the last one that has it: nothing was saved between two of them
				if p.ended > g.from && p.ended <= g.to { // it ended unseen
					missing := p.integral(g.from, g.to)
					all.PodSeconds -= missing.PodSeconds
					all.GPUSeconds -= missing.GPUSeconds
					all.Money -= missing.Money
					break
				}
			}
			want = want.Plus(all)
		}
		got := sum(l.Rows(start, after(now)))
		// In the moment before the ledger looks, all pods may end for it. What is saved is rounded to a tenth of a second.
		unseen := delay*float64(len(lives)) + 0.5
		for _, c := range []struct {
			what      string
			got, want float64
			floor     float64
		}{{"pod-seconds", got.PodSeconds, want.PodSeconds, unseen}, {"GPU-seconds", got.GPUSeconds, want.GPUSeconds, 8 * unseen},
			{"money", got.Money, want.Money, 100 * unseen / 3600}} {
			if math.Abs(c.got-c.want) > 0.01*c.want+c.floor {
				t.Fatalf("%s: the causes add up to %v, the pods to %v", c.what, c.got, c.want)
			}
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	l := begun(ledger.Limits{})
	var pods []ledger.Pod
	for i := range 50 {
		p := pod([]ledger.Cause{ledger.Used, ledger.Idle}[i%2], 0)
		pods = append(pods, p)
	}
	b.ReportAllocs()
	at := 0.0
	for b.Loop() {
		at++
		see(l, at, pods...)
	}
}

func TestTheMoneyOfOneCauseOutlivesAProcess(t *testing.T) {
	l := begun(ledger.Limits{})
	for minute := range 61 {
		see(l, float64(minute)*60, pod(ledger.Warm, 0), pod(ledger.Used, 0))
	}
	if got := l.MoneySince(llm, ledger.Warm, start); math.Abs(got-36) > 1e-6 {
		t.Errorf("an hour of a warm pod at 36 per hour cost %v", got)
	}
	if got := l.MoneySince(llm, ledger.Warm, after(1800)); math.Abs(got-18) > 1e-6 {
		t.Errorf("the second half of it cost %v", got)
	}
	saved := l.Save(llm, after(3600))
	next := ledger.New(after(3600), ledger.Limits{})
	next.Restore(llm, saved)
	if got := next.MoneySince(llm, ledger.Warm, start); math.Abs(got-36) > 1e-4 {
		t.Errorf("after a restart: %v", got)
	}
	if got := next.MoneySince(nodepool.ClusterKey{Namespace: "ml", Name: "etl"}, ledger.Warm, start); got != 0 {
		t.Errorf("another RayCluster cost %v", got)
	}
}

func TestOnlyWhatHasChangedIsSavedAgain(t *testing.T) {
	etl := nodepool.ClusterKey{Namespace: "ml", Name: "etl"}
	l := begun(ledger.Limits{})
	l.Observe(ledger.Observation{At: start, Cluster: etl})
	l.Restore(etl, nil)
	if changed, _ := l.Changed(0); !slices.Equal(changed, []nodepool.ClusterKey{llm}) {
		t.Errorf("%v changed; what is restored is saved already", changed)
	}
	l.Observe(ledger.Observation{At: start, Cluster: etl})
	changed, last := l.Changed(0)
	if diff := cmp.Diff([]nodepool.ClusterKey{etl, llm}, changed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	see(l, 60)
	if changed, next := l.Changed(last); !slices.Equal(changed, []nodepool.ClusterKey{llm}) || next <= last {
		t.Errorf("after %d, %v changed, the last with number %d", last, changed, next)
	}
}

func TestWhatNodesWithoutPodsCostOutlivesAProcessAndIsNoCostOfPods(t *testing.T) {
	l := begun(ledger.Limits{})
	for minute := range 91 {
		hourly := 6.0
		if minute >= 60 {
			hourly = 0
		}
		l.Observe(ledger.Observation{At: after(float64(minute) * 60), Cluster: llm, NodesHourly: hourly})
	}
	if got := l.NodesSince(llm, start); math.Abs(got-6) > 1e-6 {
		t.Errorf("an hour at 6 per hour cost %v", got)
	}
	if got := l.NodesSince(llm, after(1800)); math.Abs(got-3) > 1e-6 {
		t.Errorf("the second half of it cost %v", got)
	}
	if rows := l.Rows(start, after(5400)); len(rows) != 0 || len(l.Totals(llm)) != 0 {
		t.Errorf("pods cost %+v, %+v", rows, l.Totals(llm))
	}
	text, err := json.Marshal(l.Save(llm, after(5400)))
	if err != nil {
		t.Fatal(err)
	}
	var saved ledger.Saved
	if err := json.Unmarshal(text, &saved); err != nil || saved.Check() != nil {
		t.Fatal(err, saved.Check())
	}
	next := ledger.New(after(5500), ledger.Limits{})
	next.Restore(llm, &saved)
	next.Observe(ledger.Observation{At: after(5500), Cluster: llm, NodesHourly: 6})
	next.Observe(ledger.Observation{At: after(5560), Cluster: llm, NodesHourly: 6})
	if got := next.NodesSince(llm, start); math.Abs(got-6.1) > 1e-4 {
		t.Errorf("after a restart and a minute more: %v", got)
	}
	if got := next.Save(llm, after(4*86400)); got.Nodes != nil {
		t.Errorf("after four days %+v is kept", got.Nodes)
	}
	saved.Nodes.Buckets[0][4] = -1
	if err := saved.Check(); err == nil || err.Error() != "nodes.b: -1: want numbers from 0 on" {
		t.Errorf("a negative amount: %v", err)
	}
}
