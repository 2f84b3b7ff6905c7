package events_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestEventsKnowNoNodes(t *testing.T) {
	importtest.Only(t, "pkg/nodepool", "pkg/nodepool/departure", "pkg/nodepool/kube/finding", "pkg/nodepool/kube/nodeobject",
		"pkg/nodepool/kube/reflector", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool/kube/watch":         "it adds Events to nodes",
		"sigs.k8s.io/controller-runtime/": "the manager's caches wait for their objects; Events may be forbidden",
	})
}
