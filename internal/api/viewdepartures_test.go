package api

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
)

func TestDeparturesComeByDeadlineWithWarningsLast(t *testing.T) {
	noon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	taint := func() *departure.Notice { return departure.OfTaint("karpenter.sh/disrupted", "") }
	v := View{
		Decision: addon.Decision{
			Snapshot: planner.Snapshot{Nodes: []planner.Node{
				{Pod: "stays", Group: "gpu", State: planner.Running},
				{Pod: "warned", Group: "gpu", State: planner.Running, Going: departure.Of(departure.Cordoned, "cordoned").Until(noon)},
				{Pod: "open", Group: "gpu", State: planner.Leaving, Going: taint()},
				{Pod: "late", Group: "gpu", State: planner.Leaving, Going: taint().Until(noon.Add(time.Hour))},
				{Pod: "soon", Group: "gpu", State: planner.Leaving, Going: taint().Until(noon)},
			}},
		},
	}
	var got []string
	for _, d := range v.Status(noon).Departures {
		text := d.Pod + " " + d.Sign
		if d.Deadline != nil {
			text += " " + d.Deadline.Format(time.TimeOnly)
		}
		if d.Leaving {
			text += " leaving"
		}
		got = append(got, text)
	}
	want := []string{"soon karpenter-disrupted 12:00:00 leaving", "late karpenter-disrupted 13:00:00 leaving", "open karpenter-disrupted leaving",
		"warned cordoned 12:00:00"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("departures (-want +got):\n%s", diff)
	}
}
