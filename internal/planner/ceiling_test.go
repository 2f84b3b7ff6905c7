package planner

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/plannertest"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// pooled is a group with some GPUs per pod whose pods can only be scheduled on these pools.
func pooled(name string, gpus int64, pools ...GroupPool) Group {
	return Group{Name: name, Resources: raydemand.Bundle{"CPU": raydemand.Whole(4), "GPU": raydemand.Whole(gpus)}, Max: 100, NumOfHosts: 1, Pools: pools}
}

func onPool(name string, most, units int64) GroupPool {
	return GroupPool{Name: name, MaxPods: &most, Resource: "nvidia.com/gpu", Units: units}
}

func gpuRequests(gpus, count int64) raydemand.Demand {
	return raydemand.Demand{Requests: []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": raydemand.Whole(gpus)}, Count: count}}}
}

func TestAGroupIsNotScaledBeyondWhatItsPoolsHold(t *testing.T) {
	s := Snapshot{Groups: []Group{pooled("g", 1, onPool("a100", 3, 1))}, Demand: gpuRequests(1, 5)}
	s.Nodes = []Node{{Pod: "g-1", Group: "g", State: Running, Total: s.Groups[0].Resources, Available: raydemand.Bundle{}}}
	plan := Compute(s, Policy{})
	if diff := gocmp.Diff(map[string]int{"g": 2}, plan.Launch); diff != "" {
		t.Error(diff)
	}
	if len(plan.InfeasibleRequests) != 1 || plan.InfeasibleRequests[0].Count != 3 || plan.InfeasibleRequests[0].Reason.Code != Capped {
		t.Fatalf("unmet: %+v", plan.InfeasibleRequests)
	}
	if got, want := plan.InfeasibleRequests[0].Reason.Message, "pool a100 cannot hold more pods of group g: at most 3 if no other pods use it (has 1, launching 2)"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	s.Groups[0].Pools = append(s.Groups[0].Pools, GroupPool{Name: "b"})
	if got := Compute(s, Policy{}).Launch["g"]; got != 5 {
		t.Errorf("with a pool that may add it launches %d, want 5", got)
	}
}

func TestGroupsThatTakeTheSameResourceOfAPoolShareIt(t *testing.T) {
	s := Snapshot{Groups: []Group{pooled("one", 1, onPool("a", 8, 1)), pooled("three", 3, onPool("a", 2, 3))}}
	s.Groups[0].Labels, s.Groups[1].Labels = map[string]string{"g": "one"}, map[string]string{"g": "three"}
	s.Requests = []raydemand.Request{
		{Bundle: raydemand.Bundle{"GPU": raydemand.Whole(3)}, Count: 4},
		{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: 8, Selectors: []raydemand.Selector{plannertest.Parse("g", "one")}},
	}
	launch := Compute(s, Policy{}).Launch
	if units := launch["one"] + 3*launch["three"]; units > 8 || units < 7 || launch["three"] > 2 {
		t.Errorf("launches %v: %d GPUs of 8", launch, units)
	}
	s.Groups[1].Pools[0].Resource = "nvidia.com/mig-3g.20gb"
	if diff := gocmp.Diff(map[string]int{"one": 8, "three": 2}, Compute(s, Policy{}).Launch); diff != "" {
		t.Errorf("groups of different instances of the same nodes: %s", diff)
	}
}

func TestGroupsOfAPoolShareItsCPUs(t *testing.T) {
	s := Snapshot{Groups: []Group{pooled("g", 1, onPool("a", 2, 1)), pooled("c", 0, onPool("a", 2, 1))}}
	for i := range s.Groups {
		s.Groups[i].Resources["CPU"] = raydemand.Whole(32)
		s.Groups[i].Pools[0].Shares = []PoolShare{{Resource: "cpu", Units: 32000, Capacity: 64000}}
	}
	s.Groups[1].Pools[0].Resource = "cpu"
	s.Groups[1].Pools[0].Units = 32000
	s.Requests = []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: 1}, {Bundle: raydemand.Bundle{"CPU": raydemand.Whole(32)}, Count: 2}}
	launch := Compute(s, Policy{}).Launch
	if got := launch["g"] + launch["c"]; got != 2 || launch["g"] < 1 {
		t.Errorf("launches %v: 32 CPU each of 64", launch)
	}
}

func TestAGangThatThePoolCannotHoldIsCapped(t *testing.T) {
	s := Snapshot{Groups: []Group{pooled("g", 1, onPool("a", 3, 1))}}
	bundle := raydemand.Bundle{"GPU": raydemand.One}
	s.Gangs = []raydemand.Gang{{ID: "aa", Strategy: raydemand.StrictSpread, Bundles: []raydemand.Bundle{bundle, bundle, bundle, bundle}}}
	plan := Compute(s, Policy{})
	if len(plan.Launch) != 0 || len(plan.InfeasibleGangRequests) != 1 || plan.InfeasibleGangRequests[0].Reason.Code != Capped {
		t.Errorf("launches %v, unmet %+v", plan.Launch, plan.InfeasibleGangRequests)
	}
}

func TestNoPlanGoesBeyondThePools(t *testing.T) {
	names := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawSnapshot(t)
		for i := range s.Groups {
			for _, name := range names[:rapid.IntRange(0, 2).Draw(t, "pools")] {
				most := rapid.Int64Range(0, 6).Draw(t, "most")
				s.Groups[i].Pools = append(s.Groups[i].Pools, GroupPool{Name: name, MaxPods: &most, Units: rapid.Int64Range(1, 3).Draw(t, "units")})
			}
		}
		plan := Compute(s, Policy{})
		// current is what pods take of each pool before the plan, those of groups with the fewest pools first; added is
		// the minimum that the launches take.
		current, capacity := map[string]int64{}, map[string]int64{}
		var added, room int64
		order := slices.Clone(plan.Groups)
		poolsOf := map[string][]GroupPool{}
		for _, g := range s.Groups {
			poolsOf[g.Name] = g.Pools
			for _, pool := range g.Pools {
				capacity[pool.Name] = max(capacity[pool.Name], *pool.MaxPods*pool.Units)
			}
		}
		slices.SortStableFunc(order, func(a, b GroupPlan) int { return cmp.Compare(len(poolsOf[a.Name]), len(poolsOf[b.Name])) })
		for _, row := range order {
			pods, launched, most, units := int64(row.Current), int64(plan.Launch[row.Name]), int64(0), int64(math.MaxInt64)
			for _, pool := range poolsOf[row.Name] {
				n := min(pods, *pool.MaxPods, (capacity[pool.Name]-current[pool.Name])/pool.Units)
				current[pool.Name] += n * pool.Units
				pods, most, units = pods-n, most+*pool.MaxPods, min(units, pool.Units)
			}
			if len(poolsOf[row.Name]) == 0 {
				continue
			}
			if launched > 0 && int64(row.Current)+launched > most {
				t.Fatalf("group %s: %d and %d more, of at most %d", row.Name, row.Current, launched, most)
			}
			added += launched * units
		}
		for pool, units := range capacity {
			room += units - current[pool]
		}
		if added > room {
			t.Fatalf("launches take %d units at least, the pools have %d: %v", added, room, plan.Launch)
		}
	})
}

func TestPoolsWithoutEndChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plannertest.DrawSnapshot(t)
		bare := Compute(s, Policy{})
		for i := range s.Groups {
			s.Groups[i].Pools = []GroupPool{{Name: "a", MaxPods: ptr(int64(1 << 30))}, {Name: "b"}}
		}
		if diff := gocmp.Diff(asText(t, bare), asText(t, Compute(s, Policy{}))); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestPoolsOfAGroupAreReadFromAFile(t *testing.T) {
	s, err := snapshotfile.ReadSnapshot(strings.NewReader(`{"groups": [{"name": "g", "pools": [{"name": "a", "maxPods": 3, "units": 2, "resource": "nvidia.com/gpu"}, {"name": "b"}]}]}`), "s.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]GroupPool{onPool("a", 3, 2), {Name: "b"}}, s.Groups[0].Pools); diff != "" {
		t.Error(diff)
	}
	_, err = snapshotfile.ReadSnapshot(strings.NewReader(`{"groups": [{"name": "g", "pools": [{"name": "a"}, {"name": "a"}]}]}`), "s.json")
	if err == nil || !strings.Contains(err.Error(), "groups[0].pools[1].name") {
		t.Errorf("two pools of one name: %v", err)
	}
}

func TestLaunchesChosenJointlyStayWithinAPoolThatGroupsShare(t *testing.T) {
	s := Snapshot{Groups: []Group{pooled("one", 1, onPool("a", 4, 1)), pooled("two", 2, onPool("a", 2, 2))}}
	s.Requests = []raydemand.Request{gpuRequests(2, 2).Requests[0], gpuRequests(1, 4).Requests[0]}
	launch := Compute(s, Policy{}).Launch
	if units := launch["one"] + 2*launch["two"]; units != 4 {
		t.Errorf("launches %v: %d GPUs of 4", launch, units)
	}
}
