package guarded_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestPatchesAreWrittenAndNotSent(t *testing.T) {
	importtest.Only(t, "pkg/nodepool", "pkg/nodepool/kube/finding", "pkg/nodepool/kube/rayobject")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/client-go/":               "package kube sends the patches",
		"sigs.k8s.io/controller-runtime/": "package kube sends the patches",
	})
}
