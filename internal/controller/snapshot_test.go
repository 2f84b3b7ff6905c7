package controller

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// states renders a snapshot's nodes as pod=STATE.
func states(s planner.Snapshot) map[string]string {
	got := map[string]string{}
	for _, n := range s.Nodes {
		got[n.Pod] = string(n.State)
		if n.Expected {
			got[n.Pod] += " expected"
		}
	}
	return got
}

func TestSnapshotStates(t *testing.T) {
	ray := func(pod string, status raydemand.NodeStatus) raydemand.Node {
		return raydemand.Node{ID: nodeID(pod + string(status)), Instance: pod, Group: "gpu", Status: status, Total: gpu(1), Available: gpu(1)}
	}
	for name, c := range map[string]struct {
		replicas int
		workers  []nodepool.Worker
		named    []string
		nodes    []raydemand.Node
		want     map[string]string
	}{
		"running and idle nodes are what Ray says": {
			replicas: 2, workers: []nodepool.Worker{{Pod: "a"}, {Pod: "b"}},
			nodes: []raydemand.Node{ray("a", raydemand.Running), ray("b", raydemand.Idle)},
			want:  map[string]string{"a": "RUNNING", "b": "IDLE"},
		},
		"a pod without a Ray node is on its way": {
			replicas: 1, workers: []nodepool.Worker{{Pod: "a"}},
			want: map[string]string{"a": "PENDING"},
		},
		"what replicas asks for and nobody has seen is expected": {
			replicas: 3, workers: []nodepool.Worker{{Pod: "a"}},
			want: map[string]string{"a": "PENDING", "gpu-expected-0": "PENDING expected", "gpu-expected-1": "PENDING expected"},
		},
		"a failed pod is replaced by the operator, so it is expected": {
			replicas: 1, workers: []nodepool.Worker{{Pod: "a", Failed: true}},
			want: map[string]string{"gpu-expected-0": "PENDING expected"},
		},
		"a pod deleted by hand leaves and its replacement is expected": {
			replicas: 1, workers: []nodepool.Worker{{Pod: "a", Terminating: true}},
			nodes: []raydemand.Node{ray("a", raydemand.Running)},
			want:  map[string]string{"a": "LEAVING", "gpu-expected-0": "PENDING expected"},
		},
		"a named pod leaves and nothing replaces it": {
			replicas: 0, workers: []nodepool.Worker{{Pod: "a"}}, named: []string{"a"},
			nodes: []raydemand.Node{ray("a", raydemand.Idle)},
			want:  map[string]string{"a": "LEAVING"},
		},
		"a draining node leaves and still counts among replicas": {
			replicas: 1, workers: []nodepool.Worker{{Pod: "a"}},
			nodes: []raydemand.Node{ray("a", raydemand.Draining)},
			want:  map[string]string{"a": "LEAVING"},
		},
		"a dead node within its grace may come back": {
			replicas: 1, workers: []nodepool.Worker{{Pod: "a"}},
			nodes: []raydemand.Node{ray("a", raydemand.Dead)},
			want:  map[string]string{"a": "PENDING"},
		},
		"the living node counts where a restart left a dead one": {
			replicas: 1, workers: []nodepool.Worker{{Pod: "a"}},
			nodes: []raydemand.Node{ray("a", raydemand.Dead), ray("a", raydemand.Running)},
			want:  map[string]string{"a": "RUNNING"},
		},
		"a Ray node without a pod is left out": {
			nodes: []raydemand.Node{ray("ghost", raydemand.Idle)},
			want:  map[string]string{},
		},
		"a pod of an unknown group is left out": {
			workers: []nodepool.Worker{{Pod: "a", Group: "removed"}},
			nodes:   []raydemand.Node{ray("a", raydemand.Idle)},
			want:    map[string]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			group := gpuGroup("gpu", c.replicas, 0, 9)
			group.WorkersToDelete = c.named
			cluster := nodepool.Cluster{Key: key, Groups: []nodepool.WorkerGroup{group}, Workers: c.workers}
			for i := range cluster.Workers {
				if cluster.Workers[i].Group == "" {
					cluster.Workers[i].Group = "gpu"
				}
			}
			got := assemble(sight{cluster: cluster, members: membership.Join(cluster, c.nodes)})
			if diff := cmp.Diff(c.want, states(got)); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpectedHostsCompleteReplicasFirst(t *testing.T) {
	group := gpuGroup("slice", 2, 0, 9)
	group.NumOfHosts = 2
	cluster := nodepool.Cluster{Key: key, Groups: []nodepool.WorkerGroup{group},
		Workers: []nodepool.Worker{{Pod: "a", Group: "slice", Replica: "slice-x"}}}
	snapshot := assemble(sight{cluster: cluster, members: membership.Join(cluster, nil)})
	replicas := map[string]int{}
	for _, n := range snapshot.Nodes {
		replicas[n.Replica]++
	}
	want := map[string]int{"slice-x": 2, "slice-expected-replica-0": 2}
	if diff := cmp.Diff(want, replicas); diff != "" {
		t.Errorf("hosts per replica (-want +got):\n%s", diff)
	}
}

func TestShapesOfNewPods(t *testing.T) {
	cpu := func(n int64) raydemand.Bundle { return raydemand.Bundle{raydemand.CPU: raydemand.Whole(n)} }
	both := func(cpus, gpus int64) raydemand.Bundle {
		return raydemand.Bundle{raydemand.CPU: raydemand.Whole(cpus), raydemand.GPU: raydemand.Whole(gpus)}
	}
	for name, c := range map[string]struct {
		declared raydemand.Bundle
		newer    bool // the pod appeared after the spec was first seen as it is
		total    raydemand.Bundle
		want     raydemand.Bundle
		findings int
	}{
		"what the spec leaves to Ray is what a node shows": {declared: gpu(1), total: both(7, 1), want: both(7, 1)},
		"an older node does not overrule the spec":         {declared: gpu(2), total: gpu(1), want: gpu(2)},
		"a node made from this spec does":                  {declared: both(4, 1), newer: true, total: cpu(4), want: cpu(4), findings: 1},
		"an older node's GPUs are no promise":              {declared: cpu(4), total: both(4, 1), want: cpu(4)},
		"what belongs to one node is left out": {declared: gpu(1), want: gpu(1),
			total: raydemand.Bundle{raydemand.GPU: raydemand.One, "node:10.0.0.9": raydemand.One, "CPU_group_0_aabb": raydemand.One}},
	} {
		t.Run(name, func(t *testing.T) {
			group := nodepool.WorkerGroup{Name: "g", Resources: c.declared, Replicas: 1, Max: 2}
			cluster := nodepool.Cluster{Key: key, Groups: []nodepool.WorkerGroup{group},
				Workers: []nodepool.Worker{{Pod: "a", Group: "g"}}}
			known := shapes{}
			if c.newer {
				known.observe(cluster, nil)
			} else {
				known.observe(cluster, membership.Join(cluster, nil))
			}
			known.observe(cluster, membership.Join(cluster, []raydemand.Node{
				{ID: nodeID("a"), Instance: "a", Status: raydemand.Running, Total: c.total, Available: c.total}}))
			if diff := cmp.Diff(c.want, known.of(group)); diff != "" {
				t.Errorf("shape (-want +got):\n%s", diff)
			}
			if got := known.findings(cluster); len(got) != c.findings {
				t.Errorf("findings = %+v, want %d", got, c.findings)
			}
		})
	}
}

// Only the first host of a slice announces its head, and the newest node may be another one.
func TestTheHeadOfATPUSliceIsNotForgottenForAHostWithoutIt(t *testing.T) {
	const head = "TPU-v6e-16-head"
	slice := nodepool.WorkerGroup{Name: "tpu", NumOfHosts: 4, Max: 2, Resources: raydemand.Bundle{"TPU": raydemand.Whole(4), head: raydemand.One}}
	known := shapes{}
	cluster := nodepool.Cluster{Groups: []nodepool.WorkerGroup{slice}}
	known.observe(cluster, nil)
	cluster.Workers = []nodepool.Worker{{Pod: "host-1", Group: "tpu"}}
	total := raydemand.Bundle{"TPU": raydemand.Whole(4)}
	known.observe(cluster, membership.Join(cluster, []raydemand.Node{{ID: nodeID("host-1"), Instance: "host-1", Status: raydemand.Idle, Total: total, Available: total}}))
	if got := known.of(slice); got[head] != raydemand.One || len(known.findings(cluster)) > 0 {
		t.Errorf("a slice to come brings %v, findings %v", got, known.findings(cluster))
	}
	if total[head] != 0 {
		t.Error("the node's own account was changed")
	}
}

func TestAnyDecisionCanBeReplayedFromItsSnapshot(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 2, 1, 4))
	w.busy(w.pod(0))
	w.want(3, gpu(1))
	replay(t, w.after(2*time.Minute))
}

func TestADecisionByAnotherPolicyIsReplayedByThatPolicy(t *testing.T) {
	preferred := gpuGroup("gpu", 0, 0, 4)
	preferred.Priority = 1
	w := newWorld(t, Config{Policy: planner.Policy{GPUForCPU: true}},
		preferred, nodepool.WorkerGroup{Name: "cpu", Resources: raydemand.Bundle{raydemand.CPU: raydemand.Whole(16)}, Max: 4})
	w.want(1, raydemand.Bundle{raydemand.CPU: raydemand.Whole(4)})
	d := w.cycle()
	if d.Plan.Launch["gpu"] != 1 || planner.Compute(d.Snapshot, planner.Policy{}).Launch["gpu"] != 0 {
		t.Fatalf("launches %v: the policy makes no difference here", d.Plan.Launch)
	}
	replay(t, d)
}

// replay plans what the decision exports.
func replay(t *testing.T, d *decision.Decision) {
	t.Helper()
	text, err := json.Marshal(d.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	replayed, err := snapshotfile.ReadSnapshot(strings.NewReader(string(text)), "snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d.Plan, planner.Compute(replayed, replayed.Policy)); diff != "" {
		t.Errorf("the replayed plan differs (-decided +replayed):\n%s", diff)
	}
}

func TestWhatThePlanFindsIsPublished(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 1, 0, 4))
	w.node(w.pod(0)).Available = gpu(9)
	d := w.cycle()
	if !slices.ContainsFunc(d.Findings, func(f raydemand.Finding) bool { return f.Code == planner.FindingOverstated }) {
		t.Errorf("findings = %+v, want %s", d.Findings, planner.FindingOverstated)
	}
}

func TestAHugeGoalIsCountedAndNotListed(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 1<<31-1), gpuGroup("other", 0, 0, 1<<31-1))
	w.group("gpu").Replicas, w.group("other").Replicas = 1_000_000, 1_000_000
	w.want(1_500_000, gpu(1))
	d := w.cycle()
	if listed := len(d.Snapshot.Nodes); listed != maxExpected {
		t.Errorf("%d nodes are listed, want %d", listed, maxExpected)
	}
	w.nothingWritten("the pods on their way are enough")
	if len(d.Plan.Launch) > 0 {
		t.Errorf("launch = %v, want none", d.Plan.Launch)
	}
}

func TestPodsOnTheirWayThatAreNotListedCountInFlight(t *testing.T) {
	w := newWorld(t, Config{MaxInFlight: 3 * maxExpected}, gpuGroup("gpu", 0, 0, 1<<31-1))
	w.group("gpu").Replicas = 2 * maxExpected
	w.want(10*maxExpected, gpu(1))
	w.cycle()
	if got := w.lastChange(); got.Replicas != 3*maxExpected {
		t.Errorf("target = %+v, want replicas up to the cap of %d", got, 3*maxExpected)
	}
}

func TestOneCallOfADriverNeverAsksForMoreThanTheInFlightCap(t *testing.T) {
	w := newWorld(t, Config{}, gpuGroup("gpu", 0, 0, 1<<31-1))
	w.want(1_000_000_000, gpu(1))
	w.cycle()
	if got := w.lastChange(); got.Replicas != 1000 || w.kube.told(EventInFlightCap) != 1 {
		t.Errorf("target = %+v and events %v, want 1000 pods and the cap told", got, w.kube.events)
	}
}
