package units_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestQuantitiesAreConvertedWithoutTheirObjects(t *testing.T) {
	importtest.Only(t, "pkg/raydemand")
	importtest.Dependencies(t, map[string]string{
		"k8s.io/api/":       "the packages that know an object's fields read them",
		"k8s.io/client-go/": "the packages that know an object's fields read them",
	})
}
