package nodes

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

// What is wrong with a node follows from the objects alone, whatever else the doctor finds.
func TestChecksOfNodesKnowNoOthers(t *testing.T) {
	importtest.Only(t, "internal/doctor/check", "internal/doctor/fix", "internal/doctor/inventory", "internal/fieldpath",
		"pkg/gpuinfo", "pkg/nodepool", "pkg/nodepool/nodegpu", "pkg/nodepool/pools", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"os": "a finding would depend on the machine", "net": "a finding would depend on the network",
		"time":    "a finding must not depend on when it is made",
		"k8s.io/": "inventory reads quantities, and nothing else of Kubernetes is needed",
	})
}
