package place

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner/plannertest"
)

// TestPartsWithAndWithoutPricesAreComparable lets a plan compare work on groups with prices and work on groups without:
// a core costs the same on both.
func TestPartsWithAndWithoutPricesAreComparable(t *testing.T) {
	s := plannertest.Read(t, `{"groups": [{"name": "gpu", "resources": {"CPU": 6, "GPU": 1}, "price": 2, "maxReplicas": 9}, {"name": "cpu", "resources": {"CPU": 30}, "maxReplicas": 9}],
		"pendingRequests": [{"resources": {"GPU": 1}, "count": 1}, {"resources": {"CPU": 30}, "count": 1}]}`)
	r := NewFleet(&s)
	want := []float64{3, 2} // the scarce resources of the GPU group are worth 20, so each unit costs 0.1
	if diff := cmp.Diff(want, newCosts(r, r.Items(s.Requests)).PerReplica); diff != "" {
		t.Errorf("costs of cpu and gpu (-want +got): %s", diff)
	}
}
