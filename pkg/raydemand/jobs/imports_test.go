package jobs

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestJobsAreValues(t *testing.T) {
	importtest.Only(t, "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":                "pods are names",
		"google.golang.org/grpc": "package pkg/raydemand/gcs speaks to Ray",
	})
	importtest.Imports(t, map[string]string{"net": "what was read is a value", "os": "what was read is a value", "time": "a reading has no age"})
}
