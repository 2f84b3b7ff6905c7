package arrival

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// observe shows a history the same group at several moments.
func observe(h *History, pools *Pools, steps map[int]Pod, moments ...int) {
	for _, moment := range moments {
		h.Observe(at(moment), []Group{{Name: "gpu", Pods: []Pod{steps[moment]}}}, pools)
	}
}

func TestTimesAreLearnedFromWhatAPodPassed(t *testing.T) {
	created := Pod{UID: "a", CreatedAt: at(0)}
	with := func(change func(*Pod)) Pod { p := created; change(&p); return p }
	bound := func(p *Pod) { p.Placed, p.ScheduledAt, p.Pool = true, at(100), "g1" }
	joined := func(p *Pod) { bound(p); p.Joined = true }
	ready := func(p *Pod) { joined(p); p.ReadyAt = at(120) }
	for name, c := range map[string]struct {
		steps   map[int]Pod
		moments []int
		want    Times
	}{
		"from its beginning": {map[int]Pod{1: created, 101: with(bound), 112: with(joined), 125: with(ready)}, []int{1, 101, 112, 125},
			Times{Node: Leg{1, 100, 100}, Join: Leg{1, 12, 12}, Whole: Leg{1, 112, 112}}},
		"by its conditions after a restart": {map[int]Pod{500: with(ready)}, []int{500, 500},
			Times{Node: Leg{1, 100, 100}, Join: Leg{1, 20, 20}, Whole: Leg{1, 120, 120}}},
		"once it is ready after a restart": {map[int]Pod{113: with(joined), 125: with(ready)}, []int{113, 125},
			Times{Node: Leg{1, 100, 100}, Join: Leg{1, 20, 20}, Whole: Leg{1, 120, 120}}},
		"not while it starts":                {map[int]Pod{1: created, 101: with(bound)}, []int{1, 101}, Times{}},
		"not if its container was restarted": {map[int]Pod{500: with(joined)}, []int{500}, Times{}},
		"of a restart while the head was away": {map[int]Pod{500: with(func(p *Pod) { ready(p); p.Joined = false }), 600: with(ready)}, []int{500, 600},
			Times{Node: Leg{1, 100, 100}, Join: Leg{1, 20, 20}, Whole: Leg{1, 120, 120}}},
		"once, although Ray has a new session": {map[int]Pod{1: created, 112: with(joined), 900: with(ready), 901: with(func(p *Pod) { ready(p); p.Joined = false }), 950: with(ready)}, []int{1, 112, 900, 901, 950},
			Times{Node: Leg{1, 100, 100}, Join: Leg{1, 12, 12}, Whole: Leg{1, 112, 112}}},
		"from where quota was granted": {map[int]Pod{1: with(func(p *Pod) { p.Gated = true }), 60: with(func(p *Pod) { p.Gated = true }), 61: created, 112: with(joined)}, []int{1, 60, 112},
			Times{Node: Leg{1, 40, 40}, Join: Leg{1, 12, 12}, Whole: Leg{1, 112, 112}}},
		"from the last request for a machine": {map[int]Pod{1: created, 80: with(func(p *Pod) { p.PromisedAt = at(70) }), 112: with(joined)}, []int{1, 80, 112},
			Times{Node: Leg{1, 30, 30}, Join: Leg{1, 12, 12}, Whole: Leg{1, 112, 112}}},
		"a pod that found room at once waited for no node": {map[int]Pod{1: created, 9: with(func(p *Pod) { joined(p); p.ScheduledAt = at(2) })}, []int{1, 9},
			Times{Join: Leg{1, 7, 7}, Whole: Leg{1, 9, 9}}},
		"clocks differ": {map[int]Pod{1: created, 9: with(joined)}, []int{1, 9}, Times{Node: Leg{1, 100, 100}, Join: Leg{1, 0, 0}, Whole: Leg{1, 9, 9}}},
	} {
		var h History
		observe(&h, nil, c.steps, c.moments...)
		if diff := cmp.Diff(c.want, h.Times(Group{Name: "gpu"}, nil)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// starts shows a history a pod that waited this many seconds for a node of a pool, and joined Ray 10 s later.
func starts(h *History, pools *Pools, group, uid, pool string, waited int) {
	pod := Pod{UID: uid, Pool: pool, CreatedAt: at(0), ScheduledAt: at(waited), ReadyAt: at(waited + 10), Placed: true, Joined: true}
	h.Observe(at(1000), []Group{{Name: group, Pods: []Pod{pod}}}, pools)
}

func TestQuantilesAreOfTheLastWorkers(t *testing.T) {
	var h History
	for i := range 50 {
		starts(&h, nil, "gpu", fmt.Sprint(i), "g1", 500-i)
	}
	want := Times{Node: Leg{20, 460, 468}, Join: Leg{20, 10, 10}, Whole: Leg{20, 470, 478}}
	if diff := cmp.Diff(want, h.Times(Group{Name: "gpu"}, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	h.Observe(at(2000), []Group{{Name: "other"}}, nil)
	if got := h.Times(Group{Name: "gpu"}, nil); got != (Times{}) {
		t.Errorf("a group that is gone is remembered: %v", got)
	}
	if len(h.pods) != 0 {
		t.Errorf("%d pods that are gone are remembered", len(h.pods))
	}
}

func TestAGroupLearnsOfNodesFromTheOthersOnItsPools(t *testing.T) {
	var pools Pools
	var first, second History
	for i := range 3 {
		starts(&first, &pools, "gpu", fmt.Sprint(i), "g1", 60)
	}
	starts(&second, &pools, "other", "x", "g2", 300)
	group := Group{Name: "other", Pools: []string{"g1", "g2", "empty"}}
	got := second.Times(group, &pools)
	if want := (Leg{4, 60, 300}); got.Node != want || got.Join.Samples != 1 {
		t.Errorf("nodes take %v, want %v of both pools; joining %v", got.Node, want, got.Join)
	}
	for i := range 3 {
		starts(&second, &pools, "other", fmt.Sprint("y", i), "g2", 200)
	}
	if got := second.Times(group, &pools).Node; got.Samples != 4 || got.P50Seconds != 200 {
		t.Errorf("with times of its own, the group says %v", got)
	}
	if took := second.Whole("other").Median(); took != 210*time.Second {
		t.Errorf("workers take %v, want 210 s", took)
	}
}

func TestPoolsAreForgottenInTheirOrder(t *testing.T) {
	var pools Pools
	for i := range mostPools + 10 {
		pools.add(fmt.Sprint("pool-", i), time.Second)
		pools.add("pool-0", time.Second)
	}
	if len(pools.took) != mostPools || len(pools.order) != mostPools {
		t.Errorf("%d pools are remembered, %d in order; want %d", len(pools.took), len(pools.order), mostPools)
	}
	if len(pools.samples([]string{"pool-0"})) == 0 || len(pools.samples([]string{"pool-1"})) != 0 {
		t.Error("a pool that is used was forgotten before one that is not")
	}
}
