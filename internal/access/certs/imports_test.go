package certs

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestCertificatesKnowNothingOfTheServer(t *testing.T) {
	importtest.Only(t)
	importtest.Imports(t, map[string]string{
		"k8s.io/": "certificates are read from files",
	})
}
