package planner

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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

func TestNoPlanGoesBeyondThePools(t *testing.T) {
	names := []string{"a", "b", "c"}
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
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
		s := drawSnapshot(t)
		bare := Compute(s, Policy{})
		for i := range s.Groups {
			s.Groups[i].Pools = []GroupPool{{Name: "a", MaxPods: ptr(int64(1 << 30))}, {Name: "b"}}
		}
		if diff := gocmp.Diff(asText(t, bare), asText(t, Compute(s, Policy{}))); diff != "" {
			t.Fatal(diff)
		}
	})
}
