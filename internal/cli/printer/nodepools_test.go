package printer

import (
	"testing"
)

func TestResourcesOfOneNameKeepTheirDomains(t *testing.T) {
	units := map[string]int64{"nvidia.com/gpu": 4, "amd.com/gpu": 2}
	if got := freeOf((Look{}), map[string]int64{"amd.com/gpu": 1}, units); got != "amd.com/gpu 1/2, nvidia.com/gpu -/4" {
		t.Error(got)
	}
}
