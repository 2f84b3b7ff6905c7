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
	var out strings.Builder
	err := WriterOf("table", Look{Now: func() time.Time { return now }}, WriteCluster)(&out, apiv1.Cluster{
		Groups: []apiv1.Group{{Name: "gpu", Starting: 9}},
		Arrivals: []apiv1.Arrival{
			{Pod: "a", Group: "gpu", Stage: "starting", Since: in(-40), Message: "ImagePullBackOff"},
			{Pod: "b", Group: "gpu", Stage: "node-launched", Since: in(-60)},
			{Pod: "c", Group: "gpu", Stage: "node-launched", Since: in(-12)},
			{Pod: "d", Group: "gpu", Stage: "node-requested", Since: in(-5)},
			{Pod: "e", Group: "gpu", Stage: "requested"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"STARTING PODS STAGE SINCE WHY gpu 1 starting 40s ImagePullBackOff gpu 2 node-launched 60s gpu 1 node-requested 5s gpu 1 requested - and 4 more",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}

func TestPodsWithAndWithoutAMessageHaveALineEach(t *testing.T) {
	var arrivals []apiv1.Arrival
	for _, message := range []string{"no capacity", "", "no capacity", "", "no capacity"} {
		arrivals = append(arrivals, apiv1.Arrival{Group: "gpu", Stage: "waits-for-node", Message: message})
	}
	lines := alikeArrivals(arrivals)
	if len(lines) != 2 || len(lines[0]) != 3 || len(lines[1]) != 2 {
		t.Errorf("got %+v, want a line for 3 pods and one for 2", lines)
	}
}

func TestAListNamesShardsWhereThereAreSome(t *testing.T) {
	for _, test := range []struct {
		shards []string
		header string
		lines  []string
	}{
		{[]string{"", ""}, "DATA  STATUS", nil},
		{[]string{"heliostat-a", ""}, "SHARD", []string{"heliostat-a", "c1"}},
	} {
		var list apiv1.ClusterList
		for i, shard := range test.shards {
			list.Items = append(list.Items, apiv1.ClusterSummary{Namespace: "ml", Name: "c" + string(rune('0'+i)), Shard: shard})
		}
		var out strings.Builder
		if err := WriterOf("table", Look{}, func(p *Page, list apiv1.ClusterList) { WriteFleet(p, "", list) })(&out, list); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(out.String(), "\n")
		if !strings.Contains(lines[0], test.header) {
			t.Errorf("shards %q: the header is %q, want %q in it", test.shards, lines[0], test.header)
		}
		for i, want := range test.lines {
			if !strings.Contains(lines[1+i], want) {
				t.Errorf("line %d is %q, want %q in it", 1+i, lines[1+i], want)
			}
		}
	}
}

func TestStatusShowsWhichMachinesGo(t *testing.T) {
	noon := time.Date(2026, 11, 23, 12, 3, 10, 0, time.UTC)
	var out strings.Builder
	err := WriterOf("table", Look{Now: time.Now}, WriteCluster)(&out, apiv1.Cluster{Departures: []apiv1.Departure{
		{Pod: "gpu-1", Group: "gpu", Sign: "karpenter-disrupted", Message: "taint karpenter.sh/disrupted", Certain: true, Leaving: true, Deadline: &noon},
		{Pod: "gpu-2", Group: "gpu", Sign: "cordoned", Message: "cordoned"},
	}})
	if err != nil {
		t.Fatal(err)
	}
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

func TestResourcesOfOneNameKeepTheirDomains(t *testing.T) {
	units := map[string]int64{"nvidia.com/gpu": 4, "amd.com/gpu": 2}
	if got := freeOf((Look{}), map[string]int64{"amd.com/gpu": 1}, units); got != "amd.com/gpu 1/2, nvidia.com/gpu -/4" {
		t.Error(got)
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
