package writequeue

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheQueueDoesNotKnowWhatIsWritten(t *testing.T) {
	importtest.Only(t, "pkg/nodepool")
	importtest.Imports(t, map[string]string{"k8s.io/": "the caller writes"})
}
