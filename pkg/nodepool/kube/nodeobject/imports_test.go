package nodeobject_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestObjectsOfNodesAreReadWithoutAClient(t *testing.T) {
	importtest.Only(t, "internal/fieldpath", "pkg/gpuinfo", "pkg/nodepool/allocation", "pkg/nodepool/departure", "pkg/nodepool/kube/finding",
		"pkg/nodepool/kube/units", "pkg/nodepool/nodegpu", "pkg/nodepool/podfit", "pkg/nodepool/pools",
		"pkg/nodepool/price", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/client-go/":               "objects are given; packages kube and watch read them",
		"sigs.k8s.io/controller-runtime/": "objects are given; packages kube and watch read them",
	})
	importtest.Imports(t, map[string]string{
		"net/http":  "objects are given; packages kube and watch read them",
		"os":        "the caller opens files",
		"log":       "what cannot be read is an error or a note",
		"log/slog":  "what cannot be read is an error or a note",
		"math/rand": "equal objects must give equal nodes",
	})
}
