package cycles

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestThePoolDoesNotKnowWhatACycleDoes(t *testing.T) {
	importtest.Only(t, "pkg/nodepool", "pkg/nodepool/kube/timing")
	importtest.Imports(t, map[string]string{"k8s.io/": "the caller watches and reads"})
}
