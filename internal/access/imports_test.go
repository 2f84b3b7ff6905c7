package access

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAccessKnowsReviewersByTheirInterfaceAlone(t *testing.T) {
	importtest.Only(t)
	importtest.Imports(t, map[string]string{
		"k8s.io/": "internal/access/kube asks Kubernetes",
	})
}
