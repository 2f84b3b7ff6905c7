package nodegpu_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestReadingANodeReachesNothingElse(t *testing.T) {
	importtest.Only(t, "pkg/gpuinfo", "pkg/nodepool/allocation", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool":        "what a node's GPUs are does not depend on clusters",
		"pkg/nodepool/pools":  "what a node's GPUs are does not depend on other nodes",
		"pkg/nodepool/podfit": "what a node's GPUs are does not depend on pods that look for a node",
		"k8s.io/":             "package kube converts Node objects",
	})
	importtest.Imports(t, map[string]string{
		"net":       "a node is read from what it is given",
		"os":        "a node is read from what it is given",
		"log":       "what is wrong with a node is a Problem",
		"log/slog":  "what is wrong with a node is a Problem",
		"math/rand": "equal nodes must read equal",
	})
}
