package finding_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAFindingIsAboutAnything(t *testing.T) {
	importtest.Only(t, "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{"k8s.io/": "the caller says which object a finding is about"})
}
