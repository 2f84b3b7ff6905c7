package cli

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestACommandLineDoesNothingByItself(t *testing.T) {
	// pkg/ for the flags of how nodes are read
	importtest.Only(t, "internal/typo", "pkg/gpuinfo", "pkg/nodepool/kube/nodeobject", "pkg/nodepool/nodegpu")
	importtest.Imports(t, map[string]string{
		"k8s.io/client-go/": "package connect finds servers",
		"net/http":          "package connect calls servers",
	})
}
