package gpuagent

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheDriverAndTheNodeAreGiven(t *testing.T) {
	importtest.Only(t, "pkg/gpuinfo", "pkg/nodepool/nodegpu")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":                "the caller writes the annotation",
		"pkg/gpuinfo/nvml":       "the caller opens the driver",
		"github.com/spf13/":      "the command line belongs to cmd",
		"github.com/prometheus/": "the report is the annotation",
	})
}
