package rayobject_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestARayClusterIsDecodedWithoutAClient(t *testing.T) {
	importtest.Only(t, "internal/fieldpath", "pkg/gpuinfo", "pkg/nodepool", "pkg/nodepool/arrival", "pkg/nodepool/capacity", "pkg/nodepool/capacity/policytext", "pkg/nodepool/departure", "pkg/nodepool/kube/finding", "pkg/nodepool/kube/shell", "pkg/nodepool/kube/units",
		"pkg/nodepool/nodegpu", "pkg/nodepool/podfit", "pkg/nodepool/pools", "pkg/nodepool/raylabels", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/client-go/":               "an object is given; package kube reads it",
		"sigs.k8s.io/controller-runtime/": "an object is given; package kube keeps the caches",
	})
	importtest.Imports(t, map[string]string{
		"net/http":  "an object is given; package kube reads it",
		"os":        "files are read by the commands that accept them",
		"log":       "what cannot be read is a finding",
		"log/slog":  "what cannot be read is a finding",
		"math/rand": "equal objects must give equal clusters",
	})
}
