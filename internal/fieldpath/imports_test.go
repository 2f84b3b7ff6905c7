package fieldpath

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestPackageKnowsNoObjects(t *testing.T) {
	importtest.Only(t, "internal/typo")
	const pure = "adapters and pure packages alike read with this package, so it depends on nothing that they may not have"
	importtest.Dependencies(t, map[string]string{"k8s.io/": pure, "sigs.k8s.io/": pure, "google.golang.org/": pure, "net": pure})
}
