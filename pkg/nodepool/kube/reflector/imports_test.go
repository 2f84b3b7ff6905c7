package reflector_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAReflectorKnowsNoKind(t *testing.T) {
	importtest.Only(t, "pkg/nodepool/kube/timing")
	importtest.Imports(t, map[string]string{"k8s.io/api/": "the caller says which kind is read, and how"})
}
