package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestASeriesShowsEveryPointOfTheCluster(t *testing.T) {
	lines := &Charts{}
	lines.Add(llm, ChartPoint{At: noon.Add(-time.Minute), Capacity: ChartAmounts{raydemand.Whole(4), raydemand.Whole(32)}})
	lines.Add(llm, ChartPoint{At: noon, Waiting: ChartAmounts{raydemand.One / 2, 0}})
	lines.Add(nodepool.ClusterKey{Namespace: "ml", Name: "other"}, ChartPoint{At: noon})
	w := newFixture(t, func(c *Config) { c.Series = lines })
	const none = `{"CPU":0,"GPU":0}`
	want := `{"points":[` +
		`{"at":"2026-03-01T11:59:00Z","capacity":{"CPU":32,"GPU":4},"desired":` + none + `,"used":` + none + `,"waiting":` + none + `},` +
		`{"at":"2026-03-01T12:00:00Z","capacity":` + none + `,"desired":` + none + `,"used":` + none + `,"waiting":{"CPU":0,"GPU":0.5}}]}`
	if answer := w.call(http.MethodGet, llmPath+"/series", ""); answer.Code != http.StatusOK || strings.TrimSpace(answer.Body.String()) != want {
		t.Errorf("%d %s\nwant 200 %s", answer.Code, answer.Body, want)
	}
}

func TestAClusterWithoutASeriesHasAnEmptyOne(t *testing.T) {
	w := newFixture(t)
	if answer := w.call(http.MethodGet, llmPath+"/series", ""); answer.Code != http.StatusOK || strings.TrimSpace(answer.Body.String()) != `{"points":[]}` {
		t.Errorf("%d %s, want no points", answer.Code, answer.Body)
	}
	if answer := w.call(http.MethodGet, "/v1/namespaces/ml/rayclusters/nobody/series", ""); answer.Code != http.StatusNotFound {
		t.Errorf("%d %s, want 404", answer.Code, answer.Body)
	}
}

func atSecond(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

func chartOf(gpu, cpu int64) ChartAmounts {
	return ChartAmounts{raydemand.One.Times(gpu), raydemand.One.Times(cpu)}
}

func bundle(gpu, cpu int64) raydemand.Bundle { return chartOf(gpu, cpu).Bundle() }

func waitingAt(seconds float64, gpus int64) ChartPoint {
	return ChartPoint{At: atSecond(seconds), Waiting: chartOf(gpus, 0)}
}

func TestAPointSumsUpADecision(t *testing.T) {
	snapshot := planner.Snapshot{
		Head: &planner.Node{Resources: bundle(0, 4)},
		Nodes: []planner.Node{
			{Pod: "busy", State: planner.Running, Total: bundle(2, 8), Available: bundle(1, 3)},
			{Pod: "idle", State: planner.Idle, Total: bundle(2, 8), Available: bundle(2, 8)},
			{Pod: "on its way", State: planner.Pending, Resources: bundle(2, 8)},
		},
		Demand: raydemand.Demand{
			Requests: []raydemand.Request{{Bundle: bundle(1, 1), Count: 3}},
			Gangs:    []raydemand.Gang{{Bundles: []raydemand.Bundle{bundle(1, 0), bundle(1, 0)}}},
		},
	}
	plan := planner.Plan{Groups: []planner.GroupPlan{{Resources: bundle(2, 8), Desired: 4}, {Name: "unknown shape", Desired: 1}}}
	want := ChartPoint{At: noon, Capacity: chartOf(4, 20), Used: chartOf(1, 5), Waiting: chartOf(5, 3), Desired: chartOf(8, 36)}
	if diff := cmp.Diff(want, ChartPointOf(noon, snapshot, plan)); diff != "" {
		t.Error(diff)
	}
}

func TestALineKeepsChangesOnly(t *testing.T) {
	var line chart
	for _, p := range []ChartPoint{waitingAt(0, 1), waitingAt(1, 1), waitingAt(2, 3), waitingAt(3, 3), waitingAt(4, 0)} {
		line.Add(p)
	}
	if diff := cmp.Diff([]ChartPoint{waitingAt(0, 1), waitingAt(2, 3), waitingAt(4, 0)}, line.Points()); diff != "" {
		t.Error(diff)
	}
}

func TestALineForgetsWhatIsOlderThanItsSpanButKnowsWhatHeldThen(t *testing.T) {
	var line chart
	hour := time.Hour.Seconds()
	for _, p := range []ChartPoint{waitingAt(0, 1), waitingAt(hour, 2), waitingAt(2*hour+1, 3), waitingAt(3*hour+1, 4)} {
		line.Add(p)
	}
	if diff := cmp.Diff([]ChartPoint{waitingAt(hour, 2), waitingAt(2*hour+1, 3), waitingAt(3*hour+1, 4)}, line.Points()); diff != "" {
		t.Error(diff)
	}
}

func TestABusyLineGetsCoarserAndKeepsItsPeaks(t *testing.T) {
	var line chart
	const peak = 1000
	for i := range 3600 {
		gpus := int64(i % 7)
		if i == 1234 {
			gpus = peak
		}
		line.Add(waitingAt(float64(i), gpus))
	}
	points := line.Points()
	if len(points) > maxChartPoints || len(points) < maxChartPoints/4 {
		t.Errorf("%d points, want at most %d and not few", len(points), maxChartPoints)
	}
	if !points[0].At.Equal(noon) {
		t.Errorf("the line begins at %s, want at %s", points[0].At, noon)
	}
	highest := raydemand.Amount(0)
	for i, p := range points {
		highest = max(highest, p.Waiting[0])
		if i > 0 && !p.At.After(points[i-1].At) {
			t.Fatalf("point %d is not after the one before", i)
		}
	}
	if highest != raydemand.One.Times(peak) {
		t.Errorf("the highest demand is %s, want %d", highest, peak)
	}
}

func TestAFleetKeepsALineForEachClusterUntilItIsGone(t *testing.T) {
	var fleet Charts
	one, other := nodepool.ClusterKey{Namespace: "ml", Name: "one"}, nodepool.ClusterKey{Namespace: "ml", Name: "other"}
	fleet.Add(one, waitingAt(0, 1))
	fleet.Add(other, waitingAt(0, 2))
	fleet.Forget(one)
	if got := fleet.Points(one); got != nil {
		t.Errorf("a forgotten cluster has %v", got)
	}
	if diff := cmp.Diff([]ChartPoint{waitingAt(0, 2)}, fleet.Points(other)); diff != "" {
		t.Error(diff)
	}
}
