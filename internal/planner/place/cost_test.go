package place

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestPartsWithAndWithoutPricesAreComparable lets a plan compare work on groups with prices and work on groups without:
// a core costs the same on both.
func TestPartsWithAndWithoutPricesAreComparable(t *testing.T) {
	price := 2.0
	s := model.Snapshot{
		Groups: []model.Group{
			{Name: "gpu", Resources: raydemand.Bundle{"CPU": raydemand.Whole(6), "GPU": raydemand.One}, Price: &price, Max: 9},
			{Name: "cpu", Resources: raydemand.Bundle{"CPU": raydemand.Whole(30)}, Max: 9},
		},
		Demand: raydemand.Demand{Requests: []raydemand.Request{{Bundle: raydemand.Bundle{"GPU": raydemand.One}, Count: 1},
			{Bundle: raydemand.Bundle{"CPU": raydemand.Whole(30)}, Count: 1}}},
	}
	r := NewFleet(&s)
	want := []float64{3, 2} // the scarce resources of the GPU group are worth 20, so each unit costs 0.1
	if diff := cmp.Diff(want, newCosts(r, r.Items(s.Requests)).PerReplica); diff != "" {
		t.Errorf("costs of cpu and gpu (-want +got): %s", diff)
	}
}
