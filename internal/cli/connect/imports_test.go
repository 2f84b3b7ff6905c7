package connect

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestConnectingNeedsNoServerAndNoOutput(t *testing.T) {
	importtest.Only(t, "internal/access", "internal/cli", "internal/httpapi/apiv1", "internal/httpapi/client", "internal/typo", "pkg/nodepool")
	importtest.Dependencies(t, map[string]string{
		"internal/httpapi":   "a client does not need the server",
		"internal/cli/table": "what is fetched is written elsewhere",
	})
}
