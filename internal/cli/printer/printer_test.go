package printer

import (
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestStatusShowsHowFarStartingWorkersAre(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	in := func(seconds int) *time.Time {
		at := now.Add(time.Duration(seconds) * time.Second)
		return &at
	}
	out := Page{Now: now}
	WriteCluster(&out, apiv1.Cluster{
		Groups: []apiv1.Group{{Name: "gpu", Starting: 9}},
		Arrivals: []apiv1.Arrival{
			{Pod: "a", Group: "gpu", Stage: "starting", Since: in(-40), Message: "ImagePullBackOff"},
			{Pod: "b", Group: "gpu", Stage: "node-launched", Since: in(-60)},
			{Pod: "c", Group: "gpu", Stage: "node-launched", Since: in(-12)},
			{Pod: "d", Group: "gpu", Stage: "node-requested", Since: in(-5)},
			{Pod: "e", Group: "gpu", Stage: "requested"},
		},
	})
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"STARTING PODS STAGE SINCE WHY gpu 1 starting 40s ImagePullBackOff gpu 2 node-launched 60s - gpu 1 node-requested 5s - gpu 1 requested - - and 4 more",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestStatusShowsWhichMachinesGo(t *testing.T) {
	noon := time.Date(2026, 11, 23, 12, 3, 10, 0, time.UTC)
	var out Page
	WriteCluster(&out, apiv1.Cluster{Departures: []apiv1.Departure{
		{Pod: "gpu-1", Group: "gpu", Sign: "karpenter-disrupted", Message: "taint karpenter.sh/disrupted", Certain: true, Leaving: true, Deadline: &noon},
		{Pod: "gpu-2", Group: "gpu", Sign: "cordoned", Message: "cordoned"},
	}})
	for _, want := range [][]string{
		{"gpu-1", "gpu", "LEAVING", "12:03:10", "karpenter-disrupted: taint karpenter.sh/disrupted"}, {"gpu-2", "gpu", "warning", "-", "cordoned: cordoned"},
	} {
		found := false
		for _, line := range strings.Split(out.String(), "\n") {
			found = found || strings.Join(strings.Fields(line), " ") == strings.Join(want, " ")
		}
		if !found {
			t.Errorf("no line %v in:\n%s", want, out.String())
		}
	}
}

func TestStatusTellsFindingsByTheirCodes(t *testing.T) {
	var p Page
	writeFindings(&p, []raydemand.Finding{{Code: "demand-truncated", Severity: raydemand.Warning, Object: "RayCluster ml/llm", Field: "spec", Seen: "x", Why: "more may wait", Fix: "ask for fewer shapes"}})
	want := "\nFindings\n  warning  demand-truncated\n           RayCluster ml/llm\n           spec: x\n           more may wait\n           ask for fewer shapes\n"
	if p.String() != want {
		t.Errorf("%q\nwant\n%q", p.String(), want)
	}
}

func TestASentenceDoesNotRepeatTheWordsOfItsCode(t *testing.T) {
	for want, reason := range map[string][2]string{
		"too_small: needs 8 GPU, has 1":             {"too_small", "too small: needs 8 GPU, has 1"},
		"cooling_down: for 5m: its pods failed":     {"cooling_down", "cooling down for 5m: its pods failed"},
		"capped: 1 of 2 bundles are served":         {"capped", "Capped: 1 of 2 bundles are served"},
		"launch: launching 1 pod":                   {"launch", "launching 1 pod"},
		"idle: idle workers serve a request longer": {"idle", "idle workers serve a request longer"},
	} {
		if got := codeAndMessage(reason[0], reason[1]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAnEmptyListSaysThatRightsMayBeMissing(t *testing.T) {
	var p Page
	const want = "No RayClusters found: there are none, or none in namespaces where you may list them.\n"
	if WriteFleet(&p, apiv1.ClusterList{}); p.String() != want {
		t.Errorf("%q, want %q", p.String(), want)
	}
}
