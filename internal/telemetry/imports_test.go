package telemetry

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTelemetryKnowsNothingOfWhatItReports(t *testing.T) {
	importtest.Only(t)
	importtest.Imports(t, map[string]string{
		"k8s.io/client-go/": "telemetry reports; it observes nothing itself",
	})
}
