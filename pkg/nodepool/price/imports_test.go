package price_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestPricesAreFactsAboutNodesAndPods(t *testing.T) {
	importtest.Only(t, "pkg/gpuinfo", "pkg/nodepool/nodegpu", "pkg/nodepool/podfit", "pkg/nodepool/pools", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool": "what a node costs does not depend on the clusters that use it",
		"k8s.io/":      "package kube reads Node objects",
	})
	importtest.Imports(t, map[string]string{
		"net":       "prices are given or built in",
		"os":        "the caller opens files",
		"time":      "a list has the day of its source, and nothing here asks for today",
		"log":       "a price that is not known is reported as such",
		"log/slog":  "a price that is not known is reported as such",
		"math/rand": "equal input must give an equal answer",
	})
}
