package manifests

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestObjectsInAFileBecomeAClusterWithoutAClientOrACommandLine(t *testing.T) {
	importtest.Only(t, "internal/planner", "internal/snapshotfile", "pkg/nodepool", "pkg/nodepool/kube/nodeobject",
		"pkg/nodepool/kube/rayobject", "pkg/nodepool/kube/watch", "pkg/nodepool/nodegpu", "pkg/nodepool/podfit",
		"pkg/nodepool/pools", "pkg/nodepool/raylabels", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"k8s.io/client-go/":               "objects come from the file; packages kube and watch read live ones",
		"sigs.k8s.io/controller-runtime/": "objects come from the file; packages kube and watch read live ones",
		"net/http":                        "objects come from the file",
		"os":                              "the caller opens the file",
		"log/slog":                        "what is wrong is an error or a finding",
	})
}
