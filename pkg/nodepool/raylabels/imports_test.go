package raylabels_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestWhatIsAnnouncedFollowsFromValuesAlone(t *testing.T) {
	importtest.Only(t, "pkg/gpuinfo", "pkg/nodepool/nodegpu", "pkg/nodepool/podfit", "pkg/nodepool/pools", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"os":   "a snapshot must give the same announcements anywhere",
		"time": "what new pods announce does not depend on the time",
	})
}
