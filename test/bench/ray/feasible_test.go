package main

import (
	"testing"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestSearchFindsWhetherWhatIsServedFits(t *testing.T) {
	group := planner.Group{
		Name: "gpu", NumOfHosts: 1, Labels: map[string]string{"zone": "a"},
		Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(8), raydemand.GPU: raydemand.Whole(2)},
	}
	one := raydemand.Bundle{raydemand.CPU: raydemand.Whole(3), raydemand.GPU: raydemand.One}
	elsewhere := raydemand.NewSelector(raydemand.Constraint{Key: "zone", Op: raydemand.NotIn, Values: []string{"a"}})
	gang := func(strategy raydemand.Strategy, bundles int) raydemand.Demand {
		g := raydemand.Gang{ID: "1", Strategy: strategy}
		for range bundles {
			g.Bundles = append(g.Bundles, one)
		}
		return raydemand.Demand{Gangs: []raydemand.Gang{g}}
	}
	request := func(count int64, selectors ...raydemand.Selector) raydemand.Demand {
		return raydemand.Demand{Requests: []raydemand.Request{{Bundle: one, Count: count, Selectors: selectors}}}
	}
	for _, c := range []struct {
		name   string
		demand raydemand.Demand
		launch int
		want   bool
	}{
		{"four fill two nodes", request(4), 2, true},
		{"a fifth does not fit", request(5), 2, false},
		{"nothing of the group is in another zone", request(1, elsewhere), 2, false},
		{"any of several selectors will do", request(1, elsewhere, nil), 2, true},
		{"a packed pair shares a node", gang(raydemand.StrictPack, 2), 1, true},
		{"a packed triple cannot", gang(raydemand.StrictPack, 3), 2, false},
		{"a loose triple can", gang(raydemand.Spread, 3), 2, true},
		{"a spread pair needs two nodes", gang(raydemand.StrictSpread, 2), 1, false},
		{"and has them", gang(raydemand.StrictSpread, 2), 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := planner.Snapshot{Groups: []planner.Group{group}, Demand: c.demand}
			a := answer{
				launch: map[string]int{"gpu": c.launch}, unservedRequests: make([]int64, len(s.Requests)), unservedGangs: make([]bool, len(s.Gangs)),
			}
			if fits, decided := feasible(s, a); fits != c.want || !decided {
				t.Errorf("fits: %v, decided: %v, want %v", fits, decided, c.want)
			}
		})
	}
}
