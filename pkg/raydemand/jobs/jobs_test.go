package jobs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/jobs"
)

func TestActorsHoldWhatTheirPlacementGroupsReserve(t *testing.T) {
	nodes := []raydemand.Node{{ID: raydemand.NodeID{1}, Instance: "a"}, {ID: raydemand.NodeID{2}, Instance: "b"}}
	r := jobs.Reading{Jobs: []jobs.Job{{Name: "train"}, {Name: "02000000"}}, Actors: []jobs.Actor{
		{Job: "train", Node: raydemand.NodeID{1}, Resources: map[string]float64{"GPU": 2, "CPU": 1}},
		{Job: "train", Node: raydemand.NodeID{1}, Resources: map[string]float64{"GPU_group_ab": 1, "GPU_group_0_ab": 1, "CPU_group_ab": 2}},
		{Job: "02000000", Node: raydemand.NodeID{1}, Resources: map[string]float64{"GPU": 0.5}},
		{Node: raydemand.NodeID{2}, Resources: map[string]float64{"CPU": 4}},
		{Job: "train", Node: raydemand.NodeID{2}},                                          // holds nothing
		{Job: "train", Node: raydemand.NodeID{3}, Resources: map[string]float64{"GPU": 9}}, // its node is gone
	}}
	held := r.On(nodes)
	want := map[string][]jobs.Hold{"a": {{Job: "02000000", GPUs: 0.5}, {Job: "train", GPUs: 3, CPU: 3}}, "b": {{Job: jobs.Unknown, CPU: 4}}}
	if diff := cmp.Diff(want, held.ByPod); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if held.Only() != "" || (*jobs.Held)(nil).Only() != "" {
		t.Error("one of two jobs has everything")
	}
	r.Jobs = r.Jobs[:1]
	if got := r.On(nodes).Only(); got != "" {
		t.Errorf("%s has everything, although an actor of another job lives", got)
	}
	r.Actors = r.Actors[:2]
	if got := r.On(nodes).Only(); got != "train" {
		t.Errorf("%q has everything, want train", got)
	}
	r.Truncated = true
	if got := r.On(nodes).Only(); got != "" {
		t.Errorf("%s has everything, although not all actors are known", got)
	}
}
