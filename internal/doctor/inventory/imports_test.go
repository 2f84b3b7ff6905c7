package inventory

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestPackageHoldsObjectsAndJudgesNothing(t *testing.T) {
	importtest.Only(t, "internal/doctor/gpuname", "internal/fieldpath", "pkg/gpuinfo", "pkg/nodepool", "pkg/nodepool/capacity", "pkg/nodepool/nodegpu", "pkg/nodepool/podfit",
		"pkg/nodepool/pools", "pkg/raydemand")
	const reads = "package intake reads objects"
	importtest.Imports(t, map[string]string{
		"os": reads, "io": reads, "net": reads, "k8s.io/client-go/": reads, "pkg/nodepool/kube": reads,
		"internal/doctor":     "what is wrong with an object is for the checks to say",
		"internal/doctor/fix": "what is wrong with an object is for the checks to say",
		"internal/typo":       "what is wrong with an object is for the checks to say",
	})
}
