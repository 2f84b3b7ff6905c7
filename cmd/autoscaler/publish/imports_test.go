package publish

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestPublishingStartsAndDecidesNothing(t *testing.T) {
	importtest.Only(t, "internal/controller", "internal/controller/decision", "internal/controller/history", "internal/controller/observation", "internal/controller/outlook", "internal/controller/spending", "internal/httpapi", "internal/httpapi/apiv1", "internal/httpapi/clusterview", "internal/httpapi/events", "internal/ledger", "internal/planner", "internal/savings", "internal/telemetry",
		"pkg/gpuinfo", "pkg/nodepool", "pkg/nodepool/capacity", "pkg/nodepool/nodegpu", "pkg/nodepool/price", "pkg/nodepool/pools", "pkg/nodepool/kube", "pkg/nodepool/kube/shards", "pkg/nodepool/kube/nodeobject", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"net/http":               "package engine starts the servers",
		"github.com/spf13/cobra": "package engine reads the flags",
		"pkg/raydemand/gcs":      "what is published was read by the controller",
	})
}
