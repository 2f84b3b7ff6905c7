package timing

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTimingKnowsNothingOfTheCalls(t *testing.T) {
	importtest.Only(t)
	importtest.Imports(t, map[string]string{"k8s.io/": "a length of time does not depend on what is called"})
}
