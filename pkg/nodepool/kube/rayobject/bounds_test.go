package rayobject

import (
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/kube/finding"
)

// What a person writes into one RayCluster is told within bounds: a finding for each of ten thousand entries, each with
// the whole annotation in it, made an answer of 200 MB.
func TestWhatIsWrongWithoutEndIsToldBriefly(t *testing.T) {
	requests := "[" + strings.Repeat("7,", 9999) + "7]"
	var unknown strings.Builder
	for i := range 500 {
		fmt.Fprintf(&unknown, "    heliostat.dev/moode-%d: %s\n", i, strings.Repeat("é", 200))
	}
	cluster := decodeSample(t,
		`[{"resources":{"GPU":0.5},"count":3,"labelSelectors":[{"zone":"in(a,b)"}]}]`, requests,
		"    heliostat.dev/mode: shadow\n", "    heliostat.dev/mode: shadow\n"+unknown.String())
	told, size := map[string]int{}, 0
	for _, f := range cluster.Findings {
		told[f.Code]++
		size += len(f.Seen) + len(f.Why) + len(f.Fix) + len(f.Field)
	}
	if told[AnnotationUnreadable] != maxProblems+1 || told[AnnotationUnknown] != finding.MostOfOneCode {
		t.Errorf("findings by code: %v, want %d and %d", told, maxProblems+1, finding.MostOfOneCode)
	}
	if size > 16<<10 {
		t.Errorf("the findings are %d bytes long", size)
	}
	text := fmt.Sprint(cluster.Findings)
	for _, want := range []string{"9997 more entries are ignored", "480 more of this kind are not listed", "(20001 bytes)"} {
		if !strings.Contains(text, want) {
			t.Errorf("nobody is told %q", want)
		}
	}
}
