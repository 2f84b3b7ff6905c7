package planbudget_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestABudgetKnowsThePlannerAlone(t *testing.T) {
	importtest.Only(t, "internal/planner", "pkg/raydemand")
}
