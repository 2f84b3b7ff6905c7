package series

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func amounts(gpu, cpu int64) Amounts {
	return Amounts{raydemand.One.Times(gpu), raydemand.One.Times(cpu)}
}

func bundle(gpu, cpu int64) raydemand.Bundle { return amounts(gpu, cpu).Bundle() }

func waiting(seconds float64, gpus int64) Point {
	return Point{At: at(seconds), Waiting: amounts(gpus, 0)}
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
	want := Point{At: noon, Capacity: amounts(4, 20), Used: amounts(1, 5), Waiting: amounts(5, 3), Desired: amounts(8, 36)}
	if diff := cmp.Diff(want, PointOf(noon, snapshot, plan)); diff != "" {
		t.Error(diff)
	}
}

func TestALineKeepsChangesOnly(t *testing.T) {
	var line Line
	for _, p := range []Point{waiting(0, 1), waiting(1, 1), waiting(2, 3), waiting(3, 3), waiting(4, 0)} {
		line.Add(p)
	}
	if diff := cmp.Diff([]Point{waiting(0, 1), waiting(2, 3), waiting(4, 0)}, line.Points()); diff != "" {
		t.Error(diff)
	}
}

func TestALineForgetsWhatIsOlderThanItsSpanButKnowsWhatHeldThen(t *testing.T) {
	var line Line
	hour := time.Hour.Seconds()
	for _, p := range []Point{waiting(0, 1), waiting(hour, 2), waiting(2*hour+1, 3), waiting(3*hour+1, 4)} {
		line.Add(p)
	}
	if diff := cmp.Diff([]Point{waiting(hour, 2), waiting(2*hour+1, 3), waiting(3*hour+1, 4)}, line.Points()); diff != "" {
		t.Error(diff)
	}
}

func TestABusyLineGetsCoarserAndKeepsItsPeaks(t *testing.T) {
	var line Line
	const peak = 1000
	for i := range 3600 {
		gpus := int64(i % 7)
		if i == 1234 {
			gpus = peak
		}
		line.Add(waiting(float64(i), gpus))
	}
	points := line.Points()
	if len(points) > maxPoints || len(points) < maxPoints/4 {
		t.Errorf("%d points, want at most %d and not few", len(points), maxPoints)
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
	var fleet Fleet
	one, other := nodepool.ClusterKey{Namespace: "ml", Name: "one"}, nodepool.ClusterKey{Namespace: "ml", Name: "other"}
	fleet.Add(one, waiting(0, 1))
	fleet.Add(other, waiting(0, 2))
	fleet.Forget(one)
	if got := fleet.Points(one); got != nil {
		t.Errorf("a forgotten cluster has %v", got)
	}
	if diff := cmp.Diff([]Point{waiting(0, 2)}, fleet.Points(other)); diff != "" {
		t.Error(diff)
	}
}
