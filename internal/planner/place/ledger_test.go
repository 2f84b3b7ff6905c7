package place

import (
	"slices"
	"testing"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestLargerRequirementsGoFirstAndSmallerSlicesAreUsedFirst(t *testing.T) {
	group := func(name, profile string, mib int64, compute float64) model.Group {
		return model.Group{Name: name, Resources: raydemand.Bundle{"CPU": raydemand.Whole(4), "GPU": raydemand.One}, Max: 10, NumOfHosts: 1,
			Slice: &model.Slice{Kind: gpuinfo.MIG, MemoryMiB: &mib, ComputeFraction: &compute, Isolation: gpuinfo.Hardware, Profile: profile}}
	}
	asking := func(memory int64) raydemand.Request {
		return raydemand.Request{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: 1, Slice: &raydemand.SliceRequirement{Memory: memory}}
	}
	s := model.Snapshot{Groups: []model.Group{group("a-7g", "7g.80gb", 81920, 1), group("b-1g", "1g.10gb", 9728, 1.0/7)}}
	for _, g := range s.Groups {
		s.Nodes = append(s.Nodes, model.Node{Pod: g.Name + "-1", Group: g.Name, State: model.Idle, Total: g.Resources, Available: g.Resources})
	}
	small, large := asking(8<<30), asking(40<<30)
	small.Bundle["CPU"] = raydemand.One // otherwise more kinds of resources would put it first
	s.Requests = []raydemand.Request{small, large}
	r := NewFleet(&s)
	p := &Search{Fleet: r}
	if items := r.Items(s.Requests); items[0].Request.Slice.Memory != 40<<30 {
		t.Errorf("%s goes first", model.Describe(items[0].Request))
	}
	if classes := p.openLedger(countUnused, nil); r.Groups[classes[0].Shape.group].Name != "b-1g" {
		t.Errorf("nodes of group %s are used first", r.Groups[classes[0].Shape.group].Name)
	}
}

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
