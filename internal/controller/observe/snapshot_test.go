package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

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
		"a pod that somebody else deletes leaves, and the plan decides whether it is replaced": {
			replicas: 1, workers: []nodepool.Worker{{Pod: "a", Terminating: true}},
			nodes: []raydemand.Node{ray("a", raydemand.Running)},
			want:  map[string]string{"a": "LEAVING"},
		},
		"a host that somebody else deletes is replaced with its replica": {
			replicas: 1, workers: []nodepool.Worker{{Pod: "a", Replica: "r", Terminating: true}},
			nodes: []raydemand.Node{ray("a", raydemand.Running)},
			want:  map[string]string{"a": "LEAVING", "gpu-expected-0": "PENDING expected"},
		},
		"a busy node whose machine goes leaves": {
			replicas: 1, workers: []nodepool.Worker{{Pod: "a", Going: departure.Of(departure.KarpenterDisrupted, "taint")}},
			nodes: []raydemand.Node{ray("a", raydemand.Running)},
			want:  map[string]string{"a": "LEAVING"},
		},
		"a warning leaves a node where it is": {
			replicas: 1, workers: []nodepool.Worker{{Pod: "a", Going: departure.Of(departure.Cordoned, "cordoned")}},
			nodes: []raydemand.Node{ray("a", raydemand.Running)},
			want:  map[string]string{"a": "RUNNING"},
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
			cluster := nodepool.Cluster{Key: llm, Groups: []nodepool.WorkerGroup{group}, Workers: c.workers}
			for i := range cluster.Workers {
				if cluster.Workers[i].Group == "" {
					cluster.Workers[i].Group = "gpu"
				}
			}
			got := Assemble(SnapshotInput{Cluster: cluster, Members: Join(cluster, c.nodes)})
			if diff := cmp.Diff(c.want, states(got)); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpectedHostsCompleteReplicasFirst(t *testing.T) {
	group := gpuGroup("slice", 2, 0, 9)
	group.NumOfHosts = 2
	cluster := nodepool.Cluster{Key: llm, Groups: []nodepool.WorkerGroup{group},
		Workers: []nodepool.Worker{{Pod: "a", Group: "slice", Replica: "slice-x"}}}
	snapshot := Assemble(SnapshotInput{Cluster: cluster, Members: Join(cluster, nil)})
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
			cluster := nodepool.Cluster{Key: llm, Groups: []nodepool.WorkerGroup{group},
				Workers: []nodepool.Worker{{Pod: "a", Group: "g"}}}
			known := Shapes{}
			if c.newer {
				known.Observe(cluster, nil)
			} else {
				known.Observe(cluster, Join(cluster, nil))
			}
			known.Observe(cluster, Join(cluster, []raydemand.Node{
				{ID: nodeID("a"), Instance: "a", Status: raydemand.Running, Total: c.total, Available: c.total}}))
			if diff := cmp.Diff(c.want, known.Of(group)); diff != "" {
				t.Errorf("shape (-want +got):\n%s", diff)
			}
			if got := known.Findings(cluster); len(got) != c.findings {
				t.Errorf("findings = %+v, want %d", got, c.findings)
			}
		})
	}
}

// Only the first host of a slice announces its head, and the newest node may be another one.
func TestTheHeadOfATPUSliceIsNotForgottenForAHostWithoutIt(t *testing.T) {
	const head = "TPU-v6e-16-head"
	slice := nodepool.WorkerGroup{Name: "tpu", NumOfHosts: 4, Max: 2, Resources: raydemand.Bundle{"TPU": raydemand.Whole(4), head: raydemand.One}}
	known := Shapes{}
	cluster := nodepool.Cluster{Groups: []nodepool.WorkerGroup{slice}}
	known.Observe(cluster, nil)
	cluster.Workers = []nodepool.Worker{{Pod: "host-1", Group: "tpu"}}
	total := raydemand.Bundle{"TPU": raydemand.Whole(4)}
	known.Observe(cluster, Join(cluster, []raydemand.Node{{ID: nodeID("host-1"), Instance: "host-1", Status: raydemand.Idle, Total: total, Available: total}}))
	if got := known.Of(slice); got[head] != raydemand.One || len(known.Findings(cluster)) > 0 {
		t.Errorf("a slice to come brings %v, findings %v", got, known.Findings(cluster))
	}
	if total[head] != 0 {
		t.Error("the node's own account was changed")
	}
}
