package capacity_test

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestAPolicyIsAValue(t *testing.T) {
	importtest.Only(t, "pkg/raydemand")
}
