package histories

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAStoreReadsAndWritesConfigMapsAlone(t *testing.T) {
	importtest.Only(t, "pkg/nodepool")
	importtest.Imports(t, map[string]string{
		"k8s.io/client-go/dynamic": "the manager reads RayClusters", "log/slog": "an error is a result",
	})
}
