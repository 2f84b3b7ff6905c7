package nodepool_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func group(name string, replicas, least, most, hosts int, stored ...string) nodepool.WorkerGroup {
	return nodepool.WorkerGroup{
		Name: name, Replicas: replicas, Min: least, Max: most, NumOfHosts: hosts,
		WorkersToDelete: stored,
	}
}

func clusterOf(groups []nodepool.WorkerGroup, workers ...nodepool.Worker) nodepool.Cluster {
	for i := range groups {
		groups[i].Index = i
	}
	return nodepool.Cluster{
		Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, InTreeAutoscaling: true,
		Head: nodepool.Head{Pod: "head"}, Groups: groups, Workers: workers,
	}
}

func pods(group string, names ...string) []nodepool.Worker {
	var workers []nodepool.Worker
	for _, name := range names {
		workers = append(workers, nodepool.Worker{Pod: name, Group: group})
	}
	return workers
}

func hosts(group, replica string, names ...string) []nodepool.Worker {
	workers := pods(group, names...)
	for i := range workers {
		workers[i].Replica = replica
	}
	return workers
}

func TestTargets(t *testing.T) {
	one := func(g nodepool.WorkerGroup) []nodepool.WorkerGroup { return []nodepool.WorkerGroup{g} }
	tests := []struct {
		name         string
		cluster      nodepool.Cluster
		launch       map[string]int
		leaving      []string
		wantReplicas int // -1: no target
		wantNames    []string
		wantFinding  string
	}{
		{
			name:    "nothing to change gives no target",
			cluster: clusterOf(one(group("gpu", 2, 0, 4, 1)), pods("gpu", "a", "b")...), wantReplicas: -1,
		},
		{
			name:    "pods on their way are in the base",
			cluster: clusterOf(one(group("gpu", 3, 0, 9, 1)), pods("gpu", "a")...),
			launch:  map[string]int{"gpu": 2}, wantReplicas: 5,
		},
		{
			name:    "replicas above the maximum count as the maximum when one leaves",
			cluster: clusterOf(one(group("gpu", 9, 0, 3, 1)), pods("gpu", "a", "b", "c")...),
			leaving: []string{"a"}, wantReplicas: 2, wantNames: []string{"a"},
		},
		{
			name:    "the minimum holds and the pod is replaced",
			cluster: clusterOf(one(group("gpu", 1, 1, 3, 1)), pods("gpu", "a")...),
			leaving: []string{"a"}, wantReplicas: 1, wantNames: []string{"a"},
		},
		{
			name:    "a launch goes on top of surplus pods, or it would create nothing",
			cluster: clusterOf(one(group("gpu", 1, 0, 9, 1)), pods("gpu", "a", "b", "c")...),
			launch:  map[string]int{"gpu": 1}, wantReplicas: 4,
		},
		{
			name:    "letting a surplus pod go does not lower the goal",
			cluster: clusterOf(one(group("gpu", 2, 0, 9, 1)), pods("gpu", "a", "b", "c")...),
			leaving: []string{"c"}, wantReplicas: 2, wantNames: []string{"c"},
		},
		{
			name:    "a name that is stored already lowers nothing again",
			cluster: clusterOf(one(group("gpu", 1, 0, 9, 1, "b")), pods("gpu", "a", "b")...),
			leaving: []string{"b"}, wantReplicas: -1,
		},
		{
			name:    "a stored name whose pod exists stays beside a new one, one whose pod is gone falls out",
			cluster: clusterOf(one(group("gpu", 2, 0, 9, 1, "b", "gone")), pods("gpu", "a", "b", "c")...),
			leaving: []string{"a"}, wantReplicas: 1, wantNames: []string{"a", "b"},
		},
		{
			name:    "a list is not shortened alone while one of its pods exists",
			cluster: clusterOf(one(group("gpu", 1, 0, 9, 1, "b", "gone")), pods("gpu", "a", "b")...), wantReplicas: -1,
		},
		{
			name:    "a list is cleared alone once all its pods are gone",
			cluster: clusterOf(one(group("gpu", 1, 0, 9, 1, "gone")), pods("gpu", "a")...), wantReplicas: 1, wantNames: []string{},
		},
		{
			name:    "an empty stored name, which blocks the operator for ever, is cleared",
			cluster: clusterOf(one(group("gpu", 1, 0, 9, 1, "")), pods("gpu", "a")...), wantReplicas: 1, wantNames: []string{},
		},
		{
			name:    "the same pod named twice leaves once",
			cluster: clusterOf(one(group("gpu", 2, 0, 9, 1)), pods("gpu", "a", "b")...),
			leaving: []string{"a", "a"}, wantReplicas: 1, wantNames: []string{"a"},
		},
		{
			name:    "the head is never named",
			cluster: clusterOf(one(group("gpu", 2, 0, 9, 1)), pods("gpu", "a", "head")...),
			leaving: []string{"head"}, wantReplicas: -1, wantFinding: nodepool.UnknownPod,
		},
		{
			name:    "an empty name is never written",
			cluster: clusterOf(one(group("gpu", 2, 0, 9, 1)), append(pods("gpu", "a"), nodepool.Worker{Group: "gpu"})...),
			leaving: []string{""}, wantReplicas: -1, wantFinding: nodepool.UnknownPod,
		},
		{
			name:    "a pod of a removed group is a finding",
			cluster: clusterOf(one(group("gpu", 2, 0, 9, 1)), pods("old", "a")...),
			leaving: []string{"a"}, wantReplicas: -1, wantFinding: nodepool.UnknownGroup,
		},
		{
			name:    "a launch of a removed group is a finding",
			cluster: clusterOf(one(group("gpu", 2, 0, 9, 1))),
			launch:  map[string]int{"old": 1}, wantReplicas: -1, wantFinding: nodepool.UnknownGroup,
		},
		{
			name:    "pods of a multi-host group are rounded up to whole replicas",
			cluster: clusterOf(one(group("tpu", 1, 0, 9, 4)), hosts("tpu", "r0", "a", "b", "c", "d")...),
			launch:  map[string]int{"tpu": 5}, wantReplicas: 3,
		},
		{
			name: "a replica leaves whole, all hosts named",
			cluster: clusterOf(one(group("tpu", 2, 0, 9, 2)),
				append(hosts("tpu", "r0", "a", "b"), hosts("tpu", "r1", "c", "d")...)...),
			leaving: []string{"d", "c"}, wantReplicas: 1, wantNames: []string{"c", "d"},
		},
		{
			name: "half a replica does not leave: the operator would delete its other host too",
			cluster: clusterOf(one(group("tpu", 2, 0, 9, 2)),
				append(hosts("tpu", "r0", "a", "b"), hosts("tpu", "r1", "c", "d")...)...),
			leaving: []string{"c"}, wantReplicas: -1, wantFinding: nodepool.SplitReplica,
		},
		{
			name:    "a pod without a replica name does not leave a multi-host group",
			cluster: clusterOf(one(group("tpu", 2, 0, 9, 2)), pods("tpu", "a")...),
			leaving: []string{"a"}, wantReplicas: -1, wantFinding: nodepool.SplitReplica,
		},
		{
			name: "a broken group is not written to",
			cluster: clusterOf(one(nodepool.WorkerGroup{Name: "gpu", Min: 4, Max: 3, NumOfHosts: 1, Broken: true}),
				pods("gpu", "a")...),
			launch: map[string]int{"gpu": 1}, wantReplicas: -1, wantFinding: nodepool.ClosedGroup,
		},
		{
			name: "a suspended group is not written to",
			cluster: clusterOf(one(nodepool.WorkerGroup{Name: "gpu", Max: 3, NumOfHosts: 1, Suspended: true}),
				pods("gpu", "a")...),
			leaving: []string{"a"}, wantReplicas: -1, wantFinding: nodepool.ClosedGroup,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			targets, findings, err := nodepool.Targets(test.cluster, test.launch, test.leaving)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case test.wantFinding == "" && len(findings) > 0:
				t.Errorf("unexpected findings: %v", findings)
			case test.wantFinding != "" && (len(findings) != 1 || findings[0].Code != test.wantFinding):
				t.Errorf("findings %v, want one %s", findings, test.wantFinding)
			}
			if test.wantReplicas < 0 {
				if len(targets) > 0 {
					t.Fatalf("targets %+v, want none", targets)
				}
				return
			}
			if len(targets) != 1 || targets[0].Replicas != test.wantReplicas {
				t.Fatalf("targets %+v, want one with %d replicas", targets, test.wantReplicas)
			}
			if diff := cmp.Diff(test.wantNames, targets[0].WorkersToDelete); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTargetsOfARefusedSpecAreNone(t *testing.T) {
	cluster := clusterOf([]nodepool.WorkerGroup{group("gpu", 1, 0, 9, 1)}, pods("gpu", "a")...)
	cluster.Refused = true
	targets, findings, err := nodepool.Targets(cluster, map[string]int{"gpu": 1}, nil)
	if err != nil || len(targets) > 0 || len(findings) != 1 || findings[0].Code != nodepool.SpecRefused {
		t.Errorf("targets %v, findings %v, err %v; want only the finding", targets, findings, err)
	}
}

func TestReplicasStoredAboveTheMaximumAreLoweredToIt(t *testing.T) {
	groups := []nodepool.WorkerGroup{
		group("cut", 3, 0, 1, 1), group("gpu", 1, 0, 9, 1),
		{Name: "paused", Replicas: 3, Max: 1, NumOfHosts: 1, Suspended: true},
	}
	cut := nodepool.Target{Group: "cut", Index: 0, From: 3, Replicas: 1}
	for _, test := range []struct {
		name   string
		cut    []string // the pods of the group
		launch map[string]int
		want   []nodepool.Target
	}{
		{"when no more replicas exist than the maximum", []string{"c"}, nil, []nodepool.Target{cut}},
		{"but not while surplus ones exist, which leave with a write", []string{"c", "d"}, nil, nil},
		{"unless something is written anyway", []string{"c", "d"}, map[string]int{"gpu": 1},
			[]nodepool.Target{{Group: "gpu", Index: 1, From: 1, Replicas: 2}, cut}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cluster := clusterOf(groups, append(pods("gpu", "a"), pods("cut", test.cut...)...)...)
			targets, _, err := nodepool.Targets(cluster, test.launch, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, targets); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTargetsRefuseANegativeLaunch(t *testing.T) {
	cluster := clusterOf([]nodepool.WorkerGroup{group("gpu", 1, 0, 9, 1)})
	if _, _, err := nodepool.Targets(cluster, map[string]int{"gpu": -1}, nil); err == nil {
		t.Error("a launch of -1 pods was accepted")
	}
}

// Whatever is asked: within limits, only own pods, never the head or an empty name, no duplicates, a reduction always
// has names, and once the targets are stored and asked again with nothing new there is nothing to do.
func TestTargetsKeepTheirRulesOnRandomInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cluster, launch, leaving := drawCluster(t)
		targets, _, err := nodepool.Targets(cluster, launch, leaving)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range targets {
			checkTarget(t, &cluster, target)
			g := &cluster.Groups[target.Index]
			g.Replicas = target.Replicas
			if target.WorkersToDelete != nil {
				g.WorkersToDelete = target.WorkersToDelete
			}
		}
		again, _, err := nodepool.Targets(cluster, nil, leaving)
		if err != nil || len(again) > 0 {
			t.Fatalf("asked again: %+v, %v; want nothing", again, err)
		}
	})
}

func drawCluster(t *rapid.T) (nodepool.Cluster, map[string]int, []string) {
	var groups []nodepool.WorkerGroup
	var workers []nodepool.Worker
	launch := map[string]int{}
	candidates := []string{"", "head", "foreign"}
	for i := range rapid.IntRange(1, 3).Draw(t, "groups") {
		name := fmt.Sprintf("g%d", i)
		least := rapid.IntRange(0, 3).Draw(t, "min")
		g := group(name, rapid.IntRange(-1, 8).Draw(t, "replicas"), least,
			least+rapid.IntRange(0, 5).Draw(t, "room"), rapid.IntRange(1, 3).Draw(t, "hosts"))
		for p := range rapid.IntRange(0, 8).Draw(t, "pods") {
			w := nodepool.Worker{
				Pod: fmt.Sprintf("%s-%d", name, p), Group: name,
				Terminating: rapid.Bool().Draw(t, "terminating"), Failed: rapid.Bool().Draw(t, "failed"),
			}
			if g.NumOfHosts > 1 {
				w.Replica = fmt.Sprintf("%s-r%d", name, p/g.NumOfHosts)
			}
			workers = append(workers, w)
			candidates = append(candidates, w.Pod)
		}
		groups = append(groups, g)
		launch[name] = rapid.IntRange(0, 9).Draw(t, "launch")
	}
	cluster := clusterOf(groups, workers...)
	cluster.InTreeAutoscaling = rapid.Bool().Draw(t, "inTree")
	for i := range cluster.Groups {
		cluster.Groups[i].WorkersToDelete = rapid.SliceOfN(rapid.SampledFrom(candidates), 0, 3).Draw(t, "stored")
	}
	return cluster, launch, rapid.SliceOf(rapid.SampledFrom(candidates)).Draw(t, "leaving")
}

func checkTarget(t *rapid.T, cluster *nodepool.Cluster, target nodepool.Target) {
	g := cluster.Groups[target.Index]
	if target.Group != g.Name || target.From != g.Replicas {
		t.Fatalf("target %+v does not repeat what was read: %+v", target, g)
	}
	if target.Replicas < g.Min || target.Replicas > g.Max {
		t.Fatalf("replicas %d outside [%d, %d]", target.Replicas, g.Min, g.Max)
	}
	if !slices.IsSorted(target.WorkersToDelete) || len(slices.Compact(slices.Clone(target.WorkersToDelete))) != len(target.WorkersToDelete) {
		t.Fatalf("names are not sorted and unique: %q", target.WorkersToDelete)
	}
	for _, name := range target.WorkersToDelete {
		own := slices.ContainsFunc(cluster.Workers, func(w nodepool.Worker) bool { return w.Pod == name && w.Group == g.Name })
		if name == "" || name == cluster.Head.Pod || !own {
			t.Fatalf("%q is named and is no pod of group %s", name, g.Name)
		}
	}
	if target.Replicas < min(max(g.Replicas, g.Min), g.Max) && len(target.WorkersToDelete) == 0 {
		t.Fatalf("a reduction without names: %+v", target)
	}
}

func TestTheNameOfAReturnedPodIsTakenBackWithAReplicaMore(t *testing.T) {
	cluster := func(inTree bool, hosts, most int, workers ...nodepool.Worker) nodepool.Cluster {
		group := nodepool.WorkerGroup{Name: "gpu", Replicas: 1, Max: most, NumOfHosts: hosts}
		for i := range workers {
			workers[i].Group = "gpu"
			if workers[i].Pod != "stays" {
				group.WorkersToDelete = append(group.WorkersToDelete, workers[i].Pod)
			}
		}
		return nodepool.Cluster{InTreeAutoscaling: inTree, Groups: []nodepool.WorkerGroup{group}, Workers: workers}
	}
	stays, named, back := nodepool.Worker{Pod: "stays"}, nodepool.Worker{Pod: "named"}, nodepool.Worker{Pod: "back", Returned: true}
	host := nodepool.Worker{Pod: "host-0", Replica: "r", Returned: true}
	other := nodepool.Worker{Pod: "host-1", Replica: "r"}
	for name, c := range map[string]struct {
		cluster  nodepool.Cluster
		launch   int
		replicas int
		names    []string
	}{
		"the other names stay":                                {cluster(true, 1, 4, stays, named, back), 0, 2, []string{"named"}},
		"a launch comes on top":                               {cluster(true, 1, 4, stays, back), 1, 3, []string{}},
		"a multi-host replica returns whole":                  {cluster(true, 2, 4, host, other), 0, 2, []string{}},
		"at the maximum, where the operator keeps surplus":    {cluster(true, 1, 1, stays, back), 0, 1, []string{}},
		"at the maximum, where any pod would go in its stead": {cluster(false, 1, 1, stays, back), 0, -1, nil},
		"in the place of one that does not exist yet":         {cluster(false, 1, 1, back), 0, 1, []string{}},
		"in the place of one that is ending":                  {cluster(false, 1, 1, nodepool.Worker{Pod: "stays", Terminating: true}, back), 0, 1, []string{}},
	} {
		targets, findings, err := nodepool.Targets(c.cluster, map[string]int{"gpu": c.launch}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.replicas < 0 {
			if len(targets)+len(findings) > 0 {
				t.Errorf("%s: targets %+v and findings %+v, want none", name, targets, findings)
			}
			continue
		}
		if len(targets) != 1 || targets[0].Replicas != c.replicas || !slices.Equal(targets[0].WorkersToDelete, c.names) || targets[0].WorkersToDelete == nil {
			t.Errorf("%s: targets = %+v, want replicas %d and names %v", name, targets, c.replicas, c.names)
		}
		if len(findings) != 1 || findings[0].Code != nodepool.NameTakenBack {
			t.Errorf("%s: findings = %+v", name, findings)
		}
	}
}

func TestReplicasFollowTheMinimumWhereTheOperatorDeletesSurplusByItself(t *testing.T) {
	cluster := nodepool.Cluster{Groups: []nodepool.WorkerGroup{{Name: "gpu", Replicas: 0, Min: 2, Max: 4, NumOfHosts: 1}}}
	got, _, err := nodepool.Targets(cluster, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]nodepool.Target{{Group: "gpu", From: 0, Replicas: 2}}, got); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	cluster.InTreeAutoscaling = true
	if got, _, _ := nodepool.Targets(cluster, nil, nil); len(got) != 0 {
		t.Errorf("with in-tree autoscaling the operator deletes nothing unnamed, and yet there are targets: %+v", got)
	}
}

func TestAHugeMinimumIsReportedAndNeverWrittenIntoReplicas(t *testing.T) {
	group := nodepool.WorkerGroup{Name: "gpu", Replicas: 1, Min: math.MaxInt32, Max: math.MaxInt32, NumOfHosts: 1}
	for name, c := range map[string]struct {
		inTree  bool
		stored  []string
		leaving []string
		want    []nodepool.Target
	}{
		"replicas follow the pods that exist": {want: []nodepool.Target{{Group: "gpu", From: 1, Replicas: 3}}},
		"with in-tree autoscaling they stay":  {inTree: true},
		"a pod is replaced": {inTree: true, leaving: []string{"b"},
			want: []nodepool.Target{{Group: "gpu", From: 1, Replicas: 3, WorkersToDelete: []string{"b"}}}},
		"names are cleared": {inTree: true, stored: []string{"gone"},
			want: []nodepool.Target{{Group: "gpu", From: 1, Replicas: 3, WorkersToDelete: []string{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			group := group
			group.WorkersToDelete = c.stored
			cluster := nodepool.Cluster{InTreeAutoscaling: c.inTree, Groups: []nodepool.WorkerGroup{group}, Workers: pods("gpu", "a", "b", "c")}
			got, findings, err := nodepool.Targets(cluster, nil, c.leaving)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			if !slices.ContainsFunc(findings, func(f raydemand.Finding) bool { return f.Code == nodepool.MinimumImmense }) {
				t.Errorf("findings = %+v", findings)
			}
		})
	}
}
