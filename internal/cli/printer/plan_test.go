package printer

import (
	"testing"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestStatusTellsFindingsByTheirCodes(t *testing.T) {
	var p Page
	writeFindings(&p, []raydemand.Finding{{Code: "demand-truncated", Severity: raydemand.Warning, Object: "RayCluster ml/llm", Field: "spec", Seen: "x", Why: "more may wait", Fix: "ask for fewer shapes"}})
	want := "\nFindings\n  warning  demand-truncated\n           RayCluster ml/llm\n           spec: x\n           more may wait\n           ask for fewer shapes\n"
	if p.String() != want {
		t.Errorf("%q\nwant\n%q", p.String(), want)
	}
}
