package place

import (
	"slices"
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestPodsForAMinimumAreInTheOrderOfTheNextPlan compares a ledger on which a minimum is launched with one on which these
// pods are on their way.
func TestPodsForAMinimumAreInTheOrderOfTheNextPlan(t *testing.T) {
	s := model.Snapshot{
		Groups: []model.Group{
			{Name: "large", Resources: raydemand.Bundle{"CPU": raydemand.Whole(8)}, Max: 10, NumOfHosts: 1},
			{Name: "small", Resources: raydemand.Bundle{"CPU": raydemand.One}, Min: 1, Max: 10, NumOfHosts: 1},
		},
		Nodes: []model.Node{{Pod: "l", Group: "large", State: model.Pending}},
	}
	order := func(given []int64) (names []string) {
		p := &Search{Fleet: NewFleet(&s)}
		l := p.open(p.openLedger(countUnused, nil), given)
		p.launchMinimum(l, given)
		for i := range l.classes {
			names = append(names, p.Groups[l.classes[i].Shape.group].Name)
		}
		return names
	}
	if now, next := order([]int64{0, 0}), order([]int64{0, 1}); !slices.Equal(now, next) || len(now) != 2 {
		t.Errorf("used in the order %v, and by the next plan %v", now, next)
	}
}
