package consolidation

import (
	"errors"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestADrainHasItsWholeTimeAfterOptingIn: the actors are read once it is over, and not in each cycle.
func TestADrainHasItsWholeTimeAfterOptingIn(t *testing.T) {
	const deadline = time.Minute
	nodes := []raydemand.Node{{ID: raydemand.NodeID{1}, Instance: "w", Group: "gpu", Status: raydemand.Draining}}
	v := observe.View{Now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), Mode: nodepool.Managed,
		Cluster: nodepool.Cluster{Groups: []nodepool.WorkerGroup{{Name: "gpu", NumOfHosts: 1, Replicas: 1, Max: 9}},
			Workers: []nodepool.Worker{{Pod: "w", UID: "w", Group: "gpu", Running: true}}}}
	v.Members = observe.Join(v.Cluster, nodes)
	c, asked := consolidator{}, scaledown.Drains{}
	overdue := func(after time.Duration) int {
		v.Now = v.Now.Add(after)
		asked.Observe(v.Now, nodes, time.Minute)
		return len(c.overdue(&v, asked, deadline))
	}
	if got := overdue(0) + overdue(time.Hour); got > 0 {
		t.Errorf("%d drains are overdue although no actor may move", got)
	}
	v.Cluster.Consolidate = nodepool.ConsolidateRestartable
	if got := overdue(0) + overdue(deadline-1); got > 0 {
		t.Errorf("%d drains are overdue within a minute after opting in", got)
	}
	if got := overdue(1); got != 1 {
		t.Errorf("%d drains are overdue a minute after opting in, want 1", got)
	}
	c.looked = v.Now
	if got := overdue(time.Second); got != 0 {
		t.Errorf("the actors are read again a second later")
	}
	if got := overdue(5 * time.Second); got != 1 {
		t.Errorf("the actors are not read again after five seconds")
	}
	v.Members[0].Worker.Going = departure.Of(departure.BadGPU, "XID 79")
	if got := overdue(5 * time.Second); got != 1 {
		t.Errorf("a drain because of a bad GPU has no deadline")
	}
	v.StateErr = errors.New("no answer")
	if got := overdue(time.Minute); got != 0 {
		t.Error("the actors are read although Ray does not answer")
	}
}
