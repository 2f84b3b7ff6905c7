package decode

import (
	"fmt"
	"strings"
	"testing"
)

// Faults of one RayCluster are reported within bounds: a finding for each of ten thousand entries, each with
// the whole annotation in it, made an answer of 200 MB.
func TestManyFaultsAreReportedBriefly(t *testing.T) {
	requests := "[" + strings.Repeat("7,", 9999) + "7]"
	var unknown strings.Builder
	for i := range 500 {
		fmt.Fprintf(&unknown, "    heliostat.dev/moode-%d: %s\n", i, strings.Repeat("é", 200))
	}
	cluster := decodeSample(t,
		`[{"resources":{"GPU":0.5},"count":3,"labelSelectors":[{"zone":"in(a,b)"}]}]`, requests,
		"    heliostat.dev/mode: shadow\n", "    heliostat.dev/mode: shadow\n"+unknown.String())
	reported, size := map[string]int{}, 0
	for _, f := range cluster.Findings {
		reported[f.Code]++
		size += len(f.Seen) + len(f.Why) + len(f.Fix) + len(f.Field)
	}
	if reported[AnnotationUnreadable] != maxProblems+1 || reported[AnnotationUnknown] != MostOfOneCode {
		t.Errorf("findings by code: %v, want %d and %d", reported, maxProblems+1, MostOfOneCode)
	}
	if size > 16<<10 {
		t.Errorf("the findings are %d bytes long", size)
	}
	text := fmt.Sprint(cluster.Findings)
	for _, want := range []string{"9997 more entries are ignored", "480 more of this kind are not listed", "(20001 bytes)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not reported", want)
		}
	}
}
