package certs

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestCertificatesNeedTheStandardLibraryAlone(t *testing.T) {
	importtest.Only(t)
	importtest.Imports(t, map[string]string{"k8s.io/": "internal/access/certs reads certificates of Secrets"})
}
