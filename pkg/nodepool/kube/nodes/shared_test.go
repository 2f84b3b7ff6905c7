package nodes

import (
	"runtime"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestAValueIsKeptWhileSomeoneUsesIt(t *testing.T) {
	var s shared[int, string, [64]int]
	made := 0
	get := func(version int, key string) *[64]int {
		return s.of(version, key, func() [64]int { made++; return [64]int{made} })
	}
	first := get(1, "a")
	if again := get(1, "a"); again != first || made != 1 {
		t.Errorf("the same value was made %d times", made)
	}
	if other := get(1, "b"); other == first || other[0] != 2 {
		t.Error("two keys have one value")
	}
	if get(2, "a"); made != 3 {
		t.Error("a value of another version was used")
	}
	get(1, "a")
	runtime.KeepAlive(first)
	runtime.GC()
	if get(1, "a"); made != 5 {
		t.Errorf("%d values were made, want 5: nobody uses the last one any more", made)
	}
}

// TestRayClustersWithEqualGroupsShareWhatTheNodesMean compares each RayCluster with one that no other is like.
func TestRayClustersWithEqualGroupsShareWhatTheNodesMean(t *testing.T) {
	n, cluster := smallFleet()
	n.view.Store(n.viewNow())
	added := func(name string, change func(*nodepool.Cluster)) nodepool.Cluster {
		now := cluster
		now.Key.Name, now.Workers = name, nil
		now.Groups = append([]nodepool.WorkerGroup(nil), cluster.Groups...)
		change(&now)
		n.addTo(&now)
		return now
	}
	same := func(*nodepool.Cluster) {}
	first := added("first", same)
	if len(first.Places) == 0 {
		t.Fatal("no place")
	}
	for name, c := range map[string]struct {
		change func(*nodepool.Cluster)
		shares bool
	}{
		"equal groups":  {same, true},
		"other labels":  {func(c *nodepool.Cluster) { c.Groups[0].Pod.Neighbors.Labels = map[string]string{"a": "b"} }, true},
		"a larger pod":  {func(c *nodepool.Cluster) { c.Groups[0].Pod.Requests = landing.Quantities{"cpu": raydemand.Whole(5)} }, false},
		"other names":   {func(c *nodepool.Cluster) { c.Groups[0].Name = "renamed" }, false},
		"own pods":      {func(c *nodepool.Cluster) { c.Workers = []nodepool.Worker{{Pod: "w", Group: "0", Node: "node-00000"}} }, true},
		"anti-affinity": {func(c *nodepool.Cluster) { c.Groups[0].Pod.Neighbors.Apart = apartFromAll() }, false},
	} {
		other := added(name, c.change)
		if shares := &other.Places[0] == &first.Places[0]; shares != c.shares {
			t.Errorf("%s: shares the places: %t, want %t", name, shares, c.shares)
		}
	}
}

func apartFromAll() []landing.PodTerm {
	return []landing.PodTerm{{}}
}
