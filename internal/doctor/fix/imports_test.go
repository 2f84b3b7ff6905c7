package fix

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestPackageWritesCommandsAndKnowsNoChecks(t *testing.T) {
	importtest.Only(t, "internal/doctor/inventory", "internal/fieldpath")
	const pure = "a fix is text; you run it"
	importtest.Imports(t, map[string]string{"os": pure, "os/exec": pure, "net": pure, "k8s.io/": pure})
}
