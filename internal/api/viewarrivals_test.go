package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
)

func TestStartingWorkersAreListedByGroupAndByHowFarTheyAre(t *testing.T) {
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	starting := func(pod, group string, state arrival.State) planner.Node {
		return planner.Node{Pod: pod, Group: group, State: planner.Pending, Arrival: &state}
	}
	v := View{
		Decision: addon.Decision{
			Snapshot: planner.Snapshot{Nodes: []planner.Node{
				{Pod: "joined", Group: "a", State: planner.Running},
				starting("other", "b", arrival.State{Stage: arrival.JoiningRay, Since: noon}),
				starting("unknown", "a", arrival.State{Stage: arrival.NodeLaunched}),
				starting("late", "a", arrival.State{Stage: arrival.NodeLaunched, Since: noon.Add(time.Second)}),
				starting("early", "a", arrival.State{Stage: arrival.NodeLaunched, Since: noon, Message: "why", ExpectedAt: noon.Add(time.Minute), LateAt: noon.Add(time.Hour)}),
				starting("almost", "a", arrival.State{Stage: arrival.Starting, Since: noon.Add(time.Minute)}),
			}},
		},
	}
	var got []string
	for _, a := range v.Status(noon).Arrivals {
		text := a.Pod + " " + a.Group + " " + a.Stage + " " + a.Message
		if a.ExpectedAt != nil {
			text += " " + a.ExpectedAt.Format(time.TimeOnly) + " " + a.LateAt.Format(time.TimeOnly)
		}
		got = append(got, text)
	}
	want := []string{"almost a starting ", "early a node-launched why 12:01:00 13:00:00", "late a node-launched ", "unknown a node-launched ", "other b joining-ray "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arrivals (-want +got):\n%s", diff)
	}
	for i := range 300 {
		v.Snapshot.Nodes = append(v.Snapshot.Nodes, starting(fmt.Sprint(i), "c", arrival.State{Stage: arrival.Bound}))
	}
	if n := len(v.Status(noon).Arrivals); n != maxArrivals {
		t.Errorf("%d workers are listed, want %d", n, maxArrivals)
	}
}
