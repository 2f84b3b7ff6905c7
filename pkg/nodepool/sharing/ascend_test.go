package sharing_test

import (
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// The register is that of the report hami-ascend-memory, with two cards.
func TestSharesOfAscendAreReportedAsUncounted(t *testing.T) {
	const key = "hami.io/node-register-Ascend910B4"
	const cards = `[{"id":"a0","count":4,"devmem":32768,"devcore":20,"type":"Ascend910B4","health":true},{"id":"a1","index":1,"count":4,"devmem":32768,"devcore":20,"type":"Ascend910B4","health":true}]`
	for _, test := range []struct {
		name, register string
		code           sharing.ProblemCode
		says           string
	}{
		{"shares", cards, sharing.SharesUncounted, "2 cards of 32768 MiB in 8 shares, which count as huawei.com/Ascend910B4: what a request"},
		{"cards that are not split", strings.ReplaceAll(cards, `"count":4`, `"count":1`), "", ""},
		{"damaged", cards[:40], sharing.RegisterUnreadable, "reading " + key},
		{"no card", "[]", sharing.RegisterUnreadable, "it names no card"},
	} {
		t.Run(test.name, func(t *testing.T) {
			read := sharing.Reader{}.Read(sharing.NodeObject{Name: "n", Allocatable: quantities("huawei.com/Ascend910B4", 8), Annotations: map[string]string{key: test.register}})
			if test.code == "" {
				if len(read.Problems) > 0 {
					t.Errorf("problems %v", read.Problems)
				}
				return
			}
			if len(read.Problems) != 1 || read.Problems[0].Code != test.code || read.Problems[0].Annotation != key || !strings.Contains(read.Problems[0].Message, test.says) {
				t.Errorf("problems %v, want %s with %s", read.Problems, test.code, test.says)
			}
			if read.HealthyUnits != nil {
				t.Errorf("pods are bounded: %v", read.HealthyUnits)
			}
		})
	}
	if !sharing.ReadsAnnotation(key) || sharing.ReadsAnnotation("hami.io/other") {
		t.Error("the wrong annotations of nodes are kept")
	}
}
