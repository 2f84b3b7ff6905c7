package costs

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAStoreHoldsTexts(t *testing.T) {
	importtest.Only(t, "pkg/nodepool")
	importtest.Dependencies(t, map[string]string{
		"internal/ledger":                 "what the texts say is the ledger's",
		"sigs.k8s.io/controller-runtime/": "the ConfigMaps are read once, not watched",
	})
}
