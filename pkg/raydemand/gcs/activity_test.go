package gcs

import (
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestRecordedRepliesSayWhatKeepsANodeBusy(t *testing.T) {
	const gpuWorker, cpuWorker = "demo-gpu-t4-worker-a1b2c", "demo-cpu-worker-g5h6j"
	reserved := []string{"CPU", "GPU"}
	for _, test := range []struct {
		state, pod string
		// placed: placement groups have bundles on the node.
		placed bool
		want   raydemand.Activity
	}{
		{"busy-task", gpuWorker, false, raydemand.Activity{Workers: true, Resources: reserved}},
		{"busy-actor-zero-cpu", cpuWorker, false, raydemand.Activity{Workers: true}},
		{"busy-object", cpuWorker, false, raydemand.Activity{Objects: true}},
		{"pg-created", gpuWorker, true, raydemand.Activity{Workers: true, Resources: reserved}},
		{"pg-rescheduling", gpuWorker, true, raydemand.Activity{Resources: reserved}},
		// The worker process of a task is still starting.
		{"backlog-first", gpuWorker, false, raydemand.Activity{Resources: reserved}},
		{"draining-busy", "demo-gpu-t4-worker-d3e4f", false,
			raydemand.Activity{Workers: true, Resources: []string{"CPU", "GPU", "node:127.0.1.12"}}},
	} {
		recorded := 0
		for _, version := range versions {
			if !recordedState(t, version, test.state) {
				continue
			}
			for _, n := range readState(t, version, test.state).Nodes {
				if n.Instance != test.pod || n.Status != raydemand.Running && n.Status != raydemand.Draining {
					continue
				}
				recorded++
				if diff := cmp.Diff(test.want, raydemand.ReadActivity(n.Activity)); diff != "" {
					t.Errorf("%s %s: %s is %s: (-want +got)\n%s", version, test.state, n.Instance, n.Status, diff)
				}
				if placed := len(n.PlacedLabels) > 0; placed != test.placed {
					t.Errorf("%s %s: %s has placed labels %v", version, test.state, n.Instance, n.PlacedLabels)
				}
			}
		}
		if recorded == 0 {
			t.Errorf("no version has %s with %s", test.state, test.pod)
		}
	}
}

// TestEveryRecordedActivityIsKnown checks the texts of all versions, except those of nodes that only had placement
// groups' resources.
func TestEveryRecordedActivityIsKnown(t *testing.T) {
	texts := 0
	for _, version := range versions {
		for _, e := range manifest(t, version) {
			if path.Base(e.Path) != "GetClusterResourceState" || e.Code != "OK" {
				continue
			}
			var reply autoscalerpb.GetClusterResourceStateReply
			if err := proto.Unmarshal(recordedAnswer(t, version, e.File).reply, &reply); err != nil {
				t.Fatalf("%s %s: %v", version, e.File, err)
			}
			for _, n := range reply.GetClusterResourceState().GetNodeStates() {
				texts += len(n.GetNodeActivity())
				kept := activity(n.GetNodeActivity())
				if read := raydemand.ReadActivity(kept); len(read.Unknown) > 0 {
					t.Errorf("%s %s: unknown %q", version, e.File, read.Unknown)
				}
				for _, text := range kept {
					if name, _ := raydemand.ActiveResource(text); isPlacementGroupResource(name) {
						t.Errorf("%s %s: %q is kept", version, e.File, text)
					}
				}
			}
		}
	}
	if texts < 100 {
		t.Errorf("only %d texts are recorded", texts)
	}
}
