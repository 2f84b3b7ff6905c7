package apiv1

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestShapesServeNothingAndCallNobody(t *testing.T) {
	importtest.Only(t, "internal/planner", "pkg/nodepool", "pkg/nodepool/nodegpu", "pkg/nodepool/pools", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"net/http":                 "calls and answers are the server's and the client's",
		"github.com/gin-gonic/gin": "a shape does not depend on what serves it",
		"k8s.io/":                  "the API's shapes are Heliostat's own",
	})
}
