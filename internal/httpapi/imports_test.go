package httpapi

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheServerDecidesNothingAndCallsNobody(t *testing.T) {
	importtest.Imports(t, map[string]string{
		"internal/httpapi/client": "the server must work without its client; only tests join the two ends",
		"internal/controller":     "the server shows decisions that cmd passes to it; it does not make them",
		"pkg/nodepool/kube":       "the server calls Kubernetes through the interfaces of Config only",
		"pkg/raydemand/gcs":       "the server does not talk to Ray",
		"k8s.io/":                 "the server calls Kubernetes through the interfaces of Config only",
	})
}
