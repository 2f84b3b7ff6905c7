package relay

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheRelayAnswersNothingItself(t *testing.T) {
	importtest.Only(t, "internal/access", "internal/httpapi/answer", "internal/httpapi/apiv1", "internal/httpapi/body",
		"internal/httpapi/limits", "internal/httpapi/problem")
	importtest.Imports(t, map[string]string{
		"internal/httpapi/clusterview": "only the leader knows the fleet",
	})
}
