package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestTheSnapshotSaysWhereStartingWorkersAre(t *testing.T) {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	group := gpuGroup("gpu", 8, 0, 9)
	group.WorkersToDelete = []string{"named"}
	group.Incoming = landing.Incoming{Launched: 2, Requested: 1, Places: []landing.Coming{
		{Pods: 1, Progress: landing.NodeReady, Since: noon.Add(3), Lacks: "its GPU"},
		{Pods: 1, Progress: landing.Registered, Since: noon.Add(2)},
		{Pods: 1, Progress: landing.Launched, Since: noon.Add(1)},
		{Pods: 1, Progress: landing.Requested, Since: noon},
	}}
	worker := func(w nodepool.Worker) nodepool.Worker {
		w.UID, w.Group = w.Pod+"-uid", "gpu"
		return w
	}
	waits := func(pod string, at int) nodepool.Worker {
		return worker(nodepool.Worker{Pod: pod, Unschedulable: "0/3 nodes", CreatedAt: noon.Add(time.Duration(at))})
	}
	cluster := nodepool.Cluster{Key: llm, Groups: []nodepool.WorkerGroup{group}, Workers: []nodepool.Worker{
		waits("a", 1), waits("b", 2), waits("c", 3), waits("d", 4), waits("e", 5), waits("named", 0),
		worker(nodepool.Worker{Pod: "going", Going: departure.Of(departure.PodDisrupted, "evicted")}),
		worker(nodepool.Worker{Pod: "joins", Node: "n", Running: true, ScheduledAt: noon, StartedAt: noon.Add(time.Second)}),
		worker(nodepool.Worker{Pod: "joined", Node: "n", Running: true}),
		worker(nodepool.Worker{Pod: "died", Node: "n", Running: true}),
	}}
	members := Join(cluster, []raydemand.Node{
		{ID: nodeID("joined"), Instance: "joined", Group: "gpu", Status: raydemand.Idle},
		{ID: nodeID("died"), Instance: "died", Group: "gpu", Status: raydemand.Dead},
	})
	arrivals := Arrivals(cluster, members)
	want := map[string]*arrival.State{
		"a": {Stage: arrival.NodeReady, Since: noon.Add(3), Message: "its GPU"}, "b": {Stage: arrival.NodeRegistered, Since: noon.Add(2)},
		"c": {Stage: arrival.NodeLaunched, Since: noon.Add(1)}, "d": {Stage: arrival.NodeRequested, Since: noon}, "e": {Stage: arrival.WaitsForNode, Since: noon.Add(5)},
		"joins": {Stage: arrival.JoiningRay, Since: noon.Add(time.Second)},
	}
	got := map[string]*arrival.State{}
	for _, n := range Assemble(SnapshotInput{Cluster: cluster, Members: members, Arrivals: arrivals}).Nodes {
		if n.Arrival != nil {
			if got[n.Pod] = n.Arrival; n.State != planner.Pending {
				t.Errorf("%s is %s and arrives", n.Pod, n.State)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("starting workers (-want +got):\n%s", diff)
	}
}
