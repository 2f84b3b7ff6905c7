package raypods_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestPodsAreReadAndNothingElse(t *testing.T) {
	importtest.Only(t, "pkg/nodepool", "pkg/nodepool/kube/rayobject", "pkg/nodepool/kube/reflector")
	importtest.Imports(t, map[string]string{
		"sigs.k8s.io/controller-runtime/": "package kube has the manager; this package keeps pods without its cache",
	})
}
