package keeper

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAKeeperKnowsHistoriesAndNotWhatHoldsThem(t *testing.T) {
	importtest.Only(t, "internal/controller/outlook", "pkg/nodepool")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/": "package pkg/nodepool/kube/histories stores histories",
	})
}
