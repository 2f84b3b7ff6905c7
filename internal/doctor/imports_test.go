package doctor_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

// Findings follow from the objects alone, and a check sees objects through inventory and writes commands with fix.
func TestPackageStaysPure(t *testing.T) {
	importtest.Only(t, "internal/doctor/check", "internal/doctor/fix", "internal/doctor/gpuname", "internal/doctor/inventory", "internal/doctor/nodes",
		"internal/doctor/refusal", "internal/fieldpath", "internal/typo",
		"pkg/gpuinfo", "pkg/nodepool", "pkg/nodepool/capacity", "pkg/nodepool/nodegpu", "pkg/nodepool/podfit", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"os": "a finding would depend on the machine", "os/exec": "a finding would depend on the machine",
		"net": "a finding would depend on the network", "io": "package intake reads",
		"log": "pure code reports by its results", "log/slog": "pure code reports by its results",
		"math/rand": "equal input must give equal findings", "math/rand/v2": "equal input must give equal findings",
		"time":    "a finding must not depend on when it is made",
		"k8s.io/": "inventory reads quantities, and nothing else of Kubernetes is needed",
	})
}
