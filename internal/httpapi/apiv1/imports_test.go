package apiv1

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTypesServeNothingAndCallNobody(t *testing.T) {
	importtest.Only(t, "internal/planner", "pkg/nodepool", "pkg/nodepool/capacity", "pkg/nodepool/nodegpu", "pkg/nodepool/pools", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"net/http":                 "the server and the client make and answer calls",
		"github.com/gin-gonic/gin": "a type does not depend on what serves it",
		"k8s.io/":                  "the types of the API are Heliostat's own",
	})
}
