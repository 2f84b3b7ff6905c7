package planner

import (
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
	if got, want := plan.InfeasibleRequests[0].Reason.Message, "pool a100 cannot hold more pods of group g: at most 3 if no other pods are there (has 1, launching 2)"; got != want {
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
		var occupants []occupant
		free := map[string]int64{}
		for i, row := range plan.Groups {
			pools := s.Groups[i].Pools
			if row.Name != s.Groups[i].Name {
				t.Fatalf("row %d is about group %s", i, row.Name)
			}
			for _, pool := range pools {
				free[pool.Name] = max(free[pool.Name], *pool.MaxPods*pool.Units)
			}
			if len(pools) > 0 {
				occupants = append(occupants, occupant{pools: pools, current: row.Current, launched: plan.Launch[row.Name]})
			}
		}
		with, current := mostCurrent(occupants, free), 0
		for i := range occupants {
			current += occupants[i].current
			occupants[i].launched = 0
		}
		// Where the pods that exist do not fit either, it is not known which of them count.
		if without := mostCurrent(occupants, free); with < 0 || with < without && without == current {
			t.Fatalf("the launches %v take places of current pods: %d of %d have one", plan.Launch, with, without)
		}
	})
}

// occupant is a group with its pods in pools: those that exist, wherever they are, and those that a plan launches.
type occupant struct {
	pools             []GroupPool
	current, launched int
}

// mostCurrent returns how many current pods can be in pools together with all pods that are launched; -1 if these alone
// do not fit. It tries all divisions of the pods among the pools.
func mostCurrent(groups []occupant, free map[string]int64) int {
	if len(groups) == 0 {
		return 0
	}
	g := groups[0]
	most := -1
	var place func(pools []GroupPool, pods int)
	place = func(pools []GroupPool, pods int) {
		if len(pools) == 0 {
			if pods < g.launched {
				return
			}
			if rest := mostCurrent(groups[1:], free); rest >= 0 {
				most = max(most, rest+pods-g.launched)
			}
			return
		}
		pool := pools[0]
		for n := min(*pool.MaxPods, free[pool.Name]/pool.Units, int64(g.current+g.launched-pods)); n >= 0; n-- {
			free[pool.Name] -= n * pool.Units
			place(pools[1:], pods+int(n))
			free[pool.Name] += n * pool.Units
		}
	}
	place(g.pools, 0)
	return most
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

func TestLaunchesStayWithinAPoolThatGroupsShare(t *testing.T) {
	s := Snapshot{Groups: []Group{pooled("one", 1, onPool("a", 4, 1)), pooled("two", 2, onPool("a", 2, 2))}}
	s.Requests = []raydemand.Request{gpuRequests(2, 2).Requests[0], gpuRequests(1, 4).Requests[0]}
	launch := Compute(s, Policy{}).Launch
	if units := launch["one"] + 2*launch["two"]; units != 4 {
		t.Errorf("launches %v: %d GPUs of 4", launch, units)
	}
}
