package ceilings_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestCeilingsKnowNoNodes(t *testing.T) {
	importtest.Only(t, "pkg/nodepool", "pkg/nodepool/kube/finding", "pkg/nodepool/kube/nodeobject", "pkg/nodepool/kube/timing",
		"pkg/nodepool/pools", "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"pkg/nodepool/kube/watch":         "it adds ceilings to nodes",
		"sigs.k8s.io/controller-runtime/": "the manager's caches wait for their objects; these reads may be forbidden",
	})
}
