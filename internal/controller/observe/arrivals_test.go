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
	want := map[string]*arrival.State{
		"a": {Stage: arrival.NodeReady, Since: noon.Add(3), Message: "its GPU"}, "b": {Stage: arrival.NodeRegistered, Since: noon.Add(2)},
		"c": {Stage: arrival.NodeLaunched, Since: noon.Add(1)}, "d": {Stage: arrival.NodeRequested, Since: noon}, "e": {Stage: arrival.WaitsForNode, Since: noon.Add(5)},
		"joins": {Stage: arrival.JoiningRay, Since: noon.Add(time.Second)},
	}
	got := map[string]*arrival.State{}
	for _, n := range Assemble(SnapshotInput{Cluster: cluster, Members: members}).Nodes {
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

func TestEachStartingPodHasAStage(t *testing.T) {
	at := func(seconds int) time.Time { return time.Date(2026, 3, 2, 12, 0, seconds, 0, time.UTC) }
	for name, c := range map[string]struct {
		pod      nodepool.Worker
		machines []landing.Coming
		want     arrival.State
	}{
		"a gate promises nothing":              {nodepool.Worker{CreatedAt: at(1), Gated: true}, []landing.Coming{{Pods: 1, Progress: landing.Launched}}, arrival.State{Stage: arrival.Gated, Since: at(1)}},
		"no machine is known":                  {nodepool.Worker{CreatedAt: at(1)}, nil, arrival.State{Stage: arrival.WaitsForNode, Since: at(1)}},
		"no machine can be had":                {nodepool.Worker{CreatedAt: at(1), NodeRefused: "limit reached"}, nil, arrival.State{Stage: arrival.WaitsForNode, Message: "limit reached", Since: at(1)}},
		"a node autoscaler adds a node":        {nodepool.Worker{CreatedAt: at(1), PromisedAt: at(20), NodeRefused: "no"}, nil, arrival.State{Stage: arrival.NodeRequested, Since: at(20)}},
		"its node lacks a device":              {nodepool.Worker{CreatedAt: at(1)}, []landing.Coming{{Pods: 2, Progress: landing.NodeReady, Since: at(90), Lacks: "nvidia.com/gpu"}}, arrival.State{Stage: arrival.NodeReady, Since: at(90), Message: "nvidia.com/gpu"}},
		"a promise counts less than a machine": {nodepool.Worker{CreatedAt: at(1), PromisedAt: at(1), NodeRefused: "no"}, []landing.Coming{{Pods: 1, Progress: landing.Launched, Since: at(3)}}, arrival.State{Stage: arrival.NodeLaunched, Since: at(3)}},
		"it is bound":                          {nodepool.Worker{CreatedAt: at(1), ScheduledAt: at(5), Node: "n"}, nil, arrival.State{Stage: arrival.Bound, Since: at(5)}},
		"it pulls an image":                    {nodepool.Worker{ScheduledAt: at(5), Node: "n", Waits: "ContainerCreating"}, nil, arrival.State{Stage: arrival.Starting, Since: at(5)}},
		"its image does not come":              {nodepool.Worker{ScheduledAt: at(5), Node: "n", Waits: "ImagePullBackOff"}, nil, arrival.State{Stage: arrival.Starting, Message: "ImagePullBackOff", Since: at(5)}},
		"Ray starts":                           {nodepool.Worker{ScheduledAt: at(5), StartedAt: at(9), Node: "n", Running: true}, nil, arrival.State{Stage: arrival.JoiningRay, Since: at(9)}},
	} {
		c.pod.UID, c.pod.Group = "uid", "gpu"
		group := nodepool.WorkerGroup{Name: "gpu", Incoming: landing.Incoming{Places: c.machines}}
		got := arrivals(nodepool.Cluster{Groups: []nodepool.WorkerGroup{group}}, []Member{{Worker: &c.pod}})
		if diff := cmp.Diff(map[string]*arrival.State{"uid": &c.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
