package observe

import (
	"maps"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// A group starts from zero, tries one pod, and remembers what it announced after the pod has gone.
func TestWhatATriedPodAnnouncedIsRemembered(t *testing.T) {
	open := []landing.Announced{{Name: "accelerator_type:", Why: "no node is known"}, {Name: "ray.io/rack", Why: "no node is known"}}
	two := []landing.Announced{{Name: "accelerator_type:", Values: []string{"A100", "T4"}, Why: "two products"}, {Name: "ray.io/rack", Values: []string{"r1", "r2"}, Why: "two racks"}}
	for name, c := range map[string]struct {
		announces []landing.Announced
		resource  string
		rack      string
		launched  int // after the pod has gone
	}{
		"the type that it showed":                 {announces: open, resource: "accelerator_type:T4", launched: 3},
		"another type than it showed":             {announces: open, resource: "accelerator_type:A100"},
		"the label that it showed":                {announces: open, rack: "r1", launched: 3},
		"another label than it showed":            {announces: open, rack: "r2"},
		"one of two types, by one pod at a time":  {announces: two, resource: "accelerator_type:T4", launched: 1},
		"the other of two types is not tried":     {announces: two, resource: "accelerator_type:A100"},
		"one of two labels, by one pod at a time": {announces: two, rack: "r1", launched: 1},
	} {
		t.Run(name, func(t *testing.T) {
			group := gpuGroup("gpu", 0, 0, 9)
			group.Announces = c.announces
			cluster := nodepool.Cluster{Key: llm, Groups: []nodepool.WorkerGroup{group}}
			known := Shapes{}
			plan := func(nodes ...raydemand.Node) int {
				members := Join(cluster, nodes)
				known.Observe(cluster, members)
				bundle := raydemand.Bundle{raydemand.GPU: raydemand.One}
				if c.resource != "" {
					bundle[c.resource] = 10
				}
				request := raydemand.Request{Bundle: bundle, Count: 3}
				if c.rack != "" {
					request.Selectors = []raydemand.Selector{raydemand.NewSelector(raydemand.Constraint{Key: "ray.io/rack", Op: raydemand.In, Values: []string{c.rack}})}
				}
				s := Assemble(SnapshotInput{Now: time.Unix(1e9, 0), Cluster: cluster, Members: members, Shapes: known, Breakers: Breakers{},
					Idle: map[raydemand.NodeID]time.Duration{}, Demand: raydemand.Demand{Requests: []raydemand.Request{request}}})
				return planner.Compute(s, planner.Policy{}).Launch["gpu"]
			}
			if got := plan(); got != 1 {
				t.Fatalf("from zero %d pods are launched, want 1 to try", got)
			}
			cluster.Groups[0].Replicas, cluster.Workers = 1, []nodepool.Worker{{Pod: "a", Group: "gpu"}}
			if got := plan(); got != 0 {
				t.Fatalf("beside the pod that is tried %d are launched", got)
			}
			total := maps.Clone(group.Resources)
			total["accelerator_type:T4"] = raydemand.One
			plan(raydemand.Node{ID: nodeID("a"), Instance: "a", Group: "gpu", Status: raydemand.Idle, Total: total, Available: total,
				Labels: map[string]string{"ray.io/node-id": "1", "ray.io/rack": "r1"}})
			cluster.Groups[0].Replicas, cluster.Workers = 0, nil
			if got := plan(); got != c.launched {
				t.Errorf("after it has gone %d are launched, want %d", got, c.launched)
			}
		})
	}
}

// A group that is pinned to other nodes starts anew: what its earlier pods announced says nothing about the next ones.
func TestWhatPodsOfAnotherTemplateAnnouncedIsForgotten(t *testing.T) {
	group := gpuGroup("gpu", 1, 0, 9)
	group.Pod.Selector = map[string]string{"pool": "t4"}
	cluster := nodepool.Cluster{Key: llm, Groups: []nodepool.WorkerGroup{group}}
	known := Shapes{}
	known.Observe(cluster, nil)
	cluster.Workers = []nodepool.Worker{{Pod: "a", Group: "gpu"}}
	total := raydemand.Bundle{"GPU": raydemand.One, "accelerator_type:T4": raydemand.One}
	members := Join(cluster, []raydemand.Node{{ID: nodeID("a"), Instance: "a", Group: "gpu", Status: raydemand.Idle, Total: total, Available: total}})
	known.Observe(cluster, members)
	shown := func() []string {
		return known.Announced("gpu", []landing.Announced{{Name: "accelerator_type:"}})[0].Shown
	}
	if got := shown(); len(got) != 1 || got[0] != "T4" {
		t.Fatalf("the pod has shown %q, want T4", got)
	}
	cluster.Groups[0].Pod.Selector = map[string]string{"pool": "h100"}
	known.Observe(cluster, members)
	if got := shown(); len(got) > 0 {
		t.Errorf("after the change %q counts as shown", got)
	}
}
