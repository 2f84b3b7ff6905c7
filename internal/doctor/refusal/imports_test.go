package refusal

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestPackageExaminesObjectsOneByOne(t *testing.T) {
	importtest.Only(t, "deploy", "internal/doctor/inventory", "internal/fieldpath", "internal/typo")
	const pure = "a fault follows from the object alone"
	importtest.Imports(t, map[string]string{"os": pure, "net": pure, "time": pure, "k8s.io/client-go/": pure})
}
