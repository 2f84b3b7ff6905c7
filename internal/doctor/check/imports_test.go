package check

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

// A check is what its list says, so what a check is knows no list.
func TestWhatACheckIsKnowsNoCheck(t *testing.T) {
	importtest.Only(t, "internal/doctor/fix", "internal/doctor/inventory", "internal/fieldpath", "pkg/raydemand")
}
