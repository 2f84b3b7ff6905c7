package listen

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestServersDoNotKnowWhatTheyAnswer(t *testing.T) {
	importtest.Only(t, "internal/access", "internal/access/certs", "internal/access/kube", "internal/cli",
		"internal/httpapi", "internal/httpapi/limits")
	importtest.Imports(t, map[string]string{
		"github.com/spf13/cobra":       "cmd has the commands; they add the flags",
		"github.com/prometheus/":       "the caller passes in /metrics",
		"k8s.io/client-go/kubernetes/": "package access/kube reviews callers",
	})
	importtest.Dependencies(t, map[string]string{
		"internal/controller": "the loop and the servers meet in cmd/autoscaler/engine",
		"pkg/nodepool/kube":   "the caches and the servers meet in cmd/autoscaler/engine",
	})
}
