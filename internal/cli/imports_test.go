package cli

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestACommandLineDoesNothingByItself(t *testing.T) {
	// pkg/ for flags and files that say how nodes are read
	importtest.Only(t, "internal/typo", "pkg/gpuinfo", "pkg/nodepool/kube/nodeobject", "pkg/nodepool/nodegpu",
		"pkg/nodepool/pools", "pkg/nodepool/price")
	importtest.Imports(t, map[string]string{
		"k8s.io/client-go/": "package connect finds servers",
		"net/http":          "package connect calls servers",
	})
}
