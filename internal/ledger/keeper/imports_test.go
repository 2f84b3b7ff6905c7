package keeper

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAKeeperKnowsTextsAndALedger(t *testing.T) {
	importtest.Only(t, "internal/ledger", "pkg/nodepool")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/": "package pkg/nodepool/kube/costs holds the texts",
	})
}
