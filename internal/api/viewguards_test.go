package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
)

func TestGuardsNameThePodsAndCountThemByGroup(t *testing.T) {
	v := View{
		Decision: addon.Decision{
			Snapshot: planner.Snapshot{
				Head: &planner.Node{Pod: "head", Group: "headgroup", KubeNode: "m0", Guard: "heliostat"},
				Nodes: []planner.Node{
					{Pod: "busy", Group: "gpu", State: planner.Running, KubeNode: "m1", Guard: "heliostat"},
					{Pod: "coming", Group: "gpu", State: planner.Pending, Guard: "heliostat"},
					{Pod: "idle", Group: "gpu", State: planner.Idle},
					{Pod: "kept", Group: "cpu", State: planner.Idle, Guard: "user"},
				},
			},
			Plan: planner.Plan{Groups: []planner.GroupPlan{{Name: "cpu"}, {Name: "gpu"}, {Name: "none"}}},
		},
	}
	c := v.Status(time.Now())
	want := []apiv1.Guard{
		{Pod: "head", Group: "headgroup", KubeNode: "m0", By: "heliostat"}, {Pod: "busy", Group: "gpu", KubeNode: "m1", By: "heliostat"},
		{Pod: "coming", Group: "gpu", By: "heliostat"}, {Pod: "kept", Group: "cpu", By: "user"},
	}
	if diff := cmp.Diff(want, c.Guards); diff != "" {
		t.Errorf("guards (-want +got):\n%s", diff)
	}
	counts := ""
	for _, g := range c.Groups {
		counts += fmt.Sprintf("%s %d ", g.Name, g.Guarded)
	}
	if counts != "cpu 1 gpu 2 none 0 " {
		t.Errorf("guarded by group: %s", counts)
	}
}

func TestAFleetOfGuardsIsCounted(t *testing.T) {
	v := View{Decision: addon.Decision{Plan: planner.Plan{Groups: []planner.GroupPlan{{Name: "gpu"}}}}}
	for range 3 * maxGuards {
		v.Snapshot.Nodes = append(v.Snapshot.Nodes, planner.Node{Group: "gpu", Guard: "heliostat"})
	}
	if c := v.Status(time.Now()); len(c.Guards) != maxGuards || c.Groups[0].Guarded != 3*maxGuards {
		t.Errorf("%d guards listed, %d counted", len(c.Guards), c.Groups[0].Guarded)
	}
}
