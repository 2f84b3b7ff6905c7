package shards

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAMemberReadsAndWritesLeasesAlone(t *testing.T) {
	importtest.Only(t, "pkg/nodepool", "pkg/nodepool/kube/timing", "pkg/shard")
	importtest.Imports(t, map[string]string{
		"k8s.io/client-go/dynamic": "the manager reads RayClusters",
	})
}
