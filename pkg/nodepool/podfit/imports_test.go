package podfit_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAFitIsJudgedByOnePodAndItsNodes(t *testing.T) {
	importtest.Only(t, "pkg/gpuinfo", "pkg/nodepool/nodegpu", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool":       "where a pod fits does not depend on the cluster that it belongs to",
		"pkg/nodepool/pools": "where a pod fits does not depend on how far a pool may grow",
		"k8s.io/":            "package kube converts Node and Pod objects",
	})
	importtest.Imports(t, map[string]string{
		"net":       "a fit is judged by what is given",
		"os":        "a fit is judged by what is given",
		"log":       "why a pod fits nowhere is in Fit.Why",
		"log/slog":  "why a pod fits nowhere is in Fit.Why",
		"math/rand": "equal input must give an equal answer",
	})
}
