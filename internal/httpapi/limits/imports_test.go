package limits

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestLimitsKnowNoHandlers(t *testing.T) {
	importtest.Only(t, "internal/access", "internal/httpapi/apiv1", "internal/httpapi/problem")
	importtest.Imports(t, map[string]string{
		"github.com/gin-gonic/gin": "a limit counts calls by the name of the caller, whatever serves them",
		"net/http":                 "a limit counts calls by the name of the caller, whatever serves them",
	})
}
