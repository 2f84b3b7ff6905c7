package client

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheClientNeedsOnlyTheTypes(t *testing.T) {
	importtest.Only(t, "internal/httpapi/apiv1", "internal/planner", "pkg/nodepool")
	importtest.Dependencies(t, map[string]string{
		"internal/httpapi":          "the client does not need the server",
		"github.com/gin-gonic/gin/": "a client serves nothing",
		"github.com/gin-gonic/gin":  "a client serves nothing",
		"k8s.io/client-go/":         "package internal/cli/connect knows how to reach a server through Kubernetes",
	})
}
