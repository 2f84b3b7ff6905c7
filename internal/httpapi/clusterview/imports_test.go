package clusterview

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestViewsServeNothing(t *testing.T) {
	importtest.Only(t, "internal/httpapi/apiv1", "internal/planner", "pkg/nodepool", "pkg/nodepool/capacity", "pkg/nodepool/arrival", "pkg/raydemand", "pkg/raydemand/jobs")
	importtest.Imports(t, map[string]string{
		"net/http":                 "a view is a value; the server and the hub send it",
		"github.com/gin-gonic/gin": "a view is a value; the server and the hub send it",
	})
}
