package body

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestBodiesAreDecodedWithoutTheFleet(t *testing.T) {
	importtest.Only(t, "internal/fieldpath", "internal/httpapi/apiv1", "internal/httpapi/limits",
		"internal/httpapi/problem", "pkg/raydemand")
	importtest.Imports(t, map[string]string{
		"github.com/gin-gonic/gin":     "a decoder needs the body alone",
		"internal/httpapi/clusterview": "the same body must always give the same result; the server compares it with the fleet",
	})
}
