package guard

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheGuardKnowsNoHandlers(t *testing.T) {
	importtest.Only(t, "internal/access", "internal/httpapi/answer", "internal/httpapi/apiv1",
		"internal/httpapi/contract", "internal/httpapi/limits", "internal/httpapi/problem")
	importtest.Imports(t, map[string]string{
		"internal/httpapi/clusterview": "a refusal must not depend on what exists",
	})
}
