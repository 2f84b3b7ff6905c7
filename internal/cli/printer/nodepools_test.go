package printer

import (
	"testing"

	"heliostat.dev/heliostat/internal/cli/table"
)

func TestResourcesOfOneNameKeepTheirDomains(t *testing.T) {
	units := map[string]int64{"nvidia.com/gpu": 4, "amd.com/gpu": 2}
	if got := freeOf((table.Look{}), map[string]int64{"amd.com/gpu": 1}, units); got != "amd.com/gpu 1/2, nvidia.com/gpu -/4" {
		t.Error(got)
	}
}
