package terms

import (
	"testing"

	"heliostat.dev/heliostat/internal/importtest"
)

func TestTheJudgeSharesNoCodeWithTheProduct(t *testing.T) {
	importtest.Only(t) // no package of this module, so none of the product
	importtest.Dependencies(t, map[string]string{"k8s.io/": "the log is read as it is written"})
}
