package owners

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestOwnersAreReadAndNothingElse(t *testing.T) {
	importtest.Only(t, "pkg/nodepool", "pkg/nodepool/kube/rayobject", "pkg/nodepool/kube/timing", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"k8s.io/client-go/dynamic":        "metadata is enough",
		"sigs.k8s.io/controller-runtime/": "package kube has the manager",
	})
}
