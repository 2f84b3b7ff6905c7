package watch

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAWatchKnowsNothingOfTheAnswer(t *testing.T) {
	importtest.Only(t, "internal/cli", "internal/cli/connect", "internal/cli/table", "internal/httpapi/client", "pkg/nodepool")
	importtest.Imports(t, map[string]string{"k8s.io/": "package connect finds servers"})
}
