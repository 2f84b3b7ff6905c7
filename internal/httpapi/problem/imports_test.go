package problem

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestProblemsKnowNoFramework(t *testing.T) {
	importtest.Only(t, "internal/access", "internal/fieldpath", "internal/httpapi/apiv1", "pkg/nodepool")
	importtest.Imports(t, map[string]string{
		"github.com/gin-gonic/gin": "package answer writes problems; limits and decoders return them without a framework",
	})
}
