package allocation_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestWhatPodsHoldIsReadFromPodsAlone(t *testing.T) {
	importtest.Only(t, "pkg/gpuinfo")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool/nodegpu": "what pods hold does not depend on what the node's cards have",
		"k8s.io/":              "package kube converts Pod objects",
	})
	importtest.Imports(t, map[string]string{
		"net":       "pods are given",
		"os":        "pods are given",
		"log":       "an implausible record is ignored, and Unrecorded names its pod",
		"log/slog":  "an implausible record is ignored, and Unrecorded names its pod",
		"time":      "a record has no age",
		"math/rand": "equal pods must hold equal shares",
	})
}
