package planner

import (
	"testing"

	"heliostat.dev/heliostat/internal/planner/plannertest"
)

// TestTheRestOfAProgramIsLaunchedGreedily has as many shapes and groups as one program may have, so that its work is
// cut short.
func TestTheRestOfAProgramIsLaunchedGreedily(t *testing.T) {
	s := plannertest.Fleet(120)
	s.Requests = plannertest.RandomShapes(60, 50)
	if plan := Compute(s, Policy{}); unserved(plan) > 0 {
		t.Errorf("%d bundles are not served", unserved(plan))
	}
}
