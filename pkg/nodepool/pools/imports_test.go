package pools_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAPoolIsKnownByItsNodesAndItsCeiling(t *testing.T) {
	importtest.Only(t, "pkg/gpuinfo", "pkg/nodepool/binpack", "pkg/nodepool/nodegpu", "pkg/nodepool/podfit", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool": "how far a pool may grow does not depend on the clusters that use it",
		"k8s.io/":      "package kube reads NodePools, NodeClaims and the Cluster Autoscaler's status",
	})
	importtest.Imports(t, map[string]string{
		"net":       "a pool is known by what is given",
		"os":        "a pool is known by what is given",
		"log":       "what is not known of a pool is nil",
		"log/slog":  "what is not known of a pool is nil",
		"math/rand": "equal input must give an equal answer",
	})
}
