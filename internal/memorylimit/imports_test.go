package memorylimit

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestALimitOfMemoryKnowsTheRuntimeAndTheKernelAlone(t *testing.T) {
	importtest.Only(t)
	importtest.Dependencies(t, map[string]string{
		"k8s.io/":     "the kernel knows the container's limit",
		"github.com/": "the runtime measures itself",
		"net":         "it reads files of the kernel",
	})
}
