package engine

import (
	"errors"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
)

func TestAFreshLeaderIsSettledWhenEachRayClusterHasADecisionOrAfterAWhile(t *testing.T) {
	keys := []nodepool.ClusterKey{{Namespace: "ml", Name: "a"}, {Namespace: "ml", Name: "b"}}
	var fault error
	var came int64
	decided, clock := map[nodepool.ClusterKey]bool{}, time.Unix(1_700_000_000, 0)
	fresh := func() *Leadership {
		return &Leadership{
			keys:    func() ([]nodepool.ClusterKey, error) { return keys, fault },
			decided: func(key nodepool.ClusterKey) bool { return decided[key] }, now: func() time.Time { return clock },
			came: func() int64 { return came },
		}
	}
	l := fresh()
	want := func(when string, want bool) {
		t.Helper()
		if got := l.Settled(); got != want {
			t.Errorf("%s: settled %v, want %v", when, got, want)
		}
	}
	want("at first", false)
	decided[keys[0]] = true
	want("after one of two", false)
	clock = clock.Add(settleTimeout - time.Nanosecond)
	want("not long enough", false)
	clock = clock.Add(time.Nanosecond)
	want("one cannot be looked at", true)

	l = fresh()
	want("a new one", false)
	decided[keys[1]] = true
	want("all", true)
	keys = append(keys, nodepool.ClusterKey{Namespace: "ml", Name: "new"})
	want("a RayCluster more, later", true)

	came++
	want("RayClusters of another shard come", false)
	decided[keys[2]] = true
	want("they are decided too", true)

	l, fault = fresh(), errors.New("caches are empty")
	want("what there is is not known", false)
}
