package kube_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheAdapterDecidesNothing(t *testing.T) {
	importtest.Dependencies(t, map[string]string{
		"internal/planner":    "the adapter carries out decisions; it makes none",
		"internal/controller": "the loop calls the adapter, not the other way round",
		"internal/httpapi":    "the adapter serves nobody",
		"pkg/raydemand/gcs":   "the adapters of Kubernetes and of Ray do not know each other",
	})
}
