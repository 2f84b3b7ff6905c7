package gpuname

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestNamesAreComparedAndNothingElse(t *testing.T) {
	importtest.Only(t, "internal/typo", "pkg/gpuinfo")
	importtest.Dependencies(t, map[string]string{"k8s.io/": "package inventory holds objects"})
}
