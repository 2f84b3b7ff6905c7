package contract

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheContractKnowsNoCallers(t *testing.T) {
	importtest.Only(t, "api", "internal/access", "internal/httpapi/apiv1", "internal/httpapi/problem")
	importtest.Imports(t, map[string]string{
		"github.com/gin-gonic/gin": "the contract is the same for every framework",
	})
}
