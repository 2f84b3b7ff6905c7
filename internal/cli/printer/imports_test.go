package printer

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAPrinterFetchesNothing(t *testing.T) {
	importtest.Only(t, "internal/cli", "internal/cli/table", "internal/doctor", "internal/httpapi/apiv1", "internal/ledger", "internal/planner",
		"pkg/gpuinfo", "pkg/nodepool", "pkg/nodepool/nodegpu", "pkg/nodepool/pools", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"k8s.io/":                "what is printed is fetched elsewhere",
		"net/http":               "what is printed is fetched elsewhere",
		"os":                     "a printer writes to what it is given",
		"github.com/spf13/cobra": "flags become arguments",
	})
}
