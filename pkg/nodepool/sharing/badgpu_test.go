package sharing_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestEachSignOfABadGPUHasItsSeverity(t *testing.T) {
	for _, row := range sharing.BadGPUSigns {
		node, text := sharing.NodeObject{}, ""
		switch row.Kind {
		case "condition":
			node.Conditions, text = map[string]string{row.Name: row.Bad}, "condition "+row.Name+" is "+row.Bad
			other := map[string]string{"True": "False", "False": "True"}[row.Bad]
			if got := (sharing.Reader{}).Read(sharing.NodeObject{Conditions: map[string]string{row.Name: other}}).Bad; len(got) > 0 {
				t.Errorf("%s is %s: %+v", row.Name, other, got)
			}
		case "label":
			node.Labels, text = map[string]string{row.Name: row.Bad}, "label "+row.Name+"="+row.Bad
		case "taint":
			node.Taints = []sharing.Taint{{Key: row.Name, Value: "true", Effect: sharing.NoSchedule}}
			text = "taint " + row.Name + "=true:NoSchedule"
		case "card":
			continue // below
		}
		want := []sharing.BadGPU{{Severity: row.Severity, Cause: text}}
		if diff := cmp.Diff(want, sharing.Reader{}.Read(node).Bad); diff != "" || row.Source == "" || !want[0].WholeNode() {
			t.Errorf("%s %s (-want +got):\n%s", row.Kind, row.Name, diff)
		}
	}
}

func TestABadCardIsNamed(t *testing.T) {
	const uuid = "GPU-3f1a0000-0000-0000-0000-000000000001"
	agent := func(card string) sharing.NodeObject {
		return sharing.NodeObject{Name: "n7", Capacity: map[string]int64{"nvidia.com/gpu": 4}, Allocatable: map[string]int64{"nvidia.com/gpu": 4},
			Annotations: map[string]string{sharing.AgentAnnotation: `{"cards": [` + card + `]}`}}
	}
	card := func(health string) string {
		return `{"index": 3, "uuid": "` + uuid + `", "product": "NVIDIA H100 80GB HBM3", "memoryMiB": 81559, ` + health + `}`
	}
	for text, c := range map[string]struct {
		node     sharing.NodeObject
		severity sharing.Severity
		gpu      string
	}{
		"XID 79: the card has fallen off the bus, on GPU-3 of node n7": {
			agent(card(`"healthy": false, "problem": "XID 79: the card has fallen off the bus"`)), sharing.Replace, "GPU-3"},
		"XID 48: double-bit memory error, on GPU-3 of node n7": {
			agent(card(`"healthy": false, "problem": "XID 48: double-bit memory error"`)), sharing.Drain, "GPU-3"},
		"a memory row could not be remapped, after 8 that were: replace the card, on GPU-3 of node n7": {
			agent(card(`"healthy": false, "problem": "a memory row could not be remapped, after 8 that were: replace the card"`)), sharing.Drain, "GPU-3"},
		"memory rows are remapped at the next reset of the card, on GPU-3 of node n7": {
			agent(card(`"healthy": true, "problem": "memory rows are remapped at the next reset of the card"`)), sharing.Watch, "GPU-3"},
		"gpu.nvidia.com/gpu-lost, on GPU-3 of node n7": {sharing.NodeObject{Name: "n7", Devices: []sharing.DRADevice{
			{Name: "gpu-3", Type: "gpu", UUID: uuid, MemoryMiB: 81559, Taint: "gpu.nvidia.com/gpu-lost"}}}, sharing.Replace, "GPU-3"},
		"example.com/maintenance, on GPU-3 of node n7": {sharing.NodeObject{Name: "n7", Devices: []sharing.DRADevice{
			{Name: "gpu-3", Type: "gpu", UUID: uuid, MemoryMiB: 81559, Taint: "example.com/maintenance"}}}, sharing.Avoid, "GPU-3"},
		"unhealthy nvidia.com/gpu, on node n7: 1 of 4": {sharing.NodeObject{Name: "n7", Capacity: map[string]int64{"nvidia.com/gpu": 4},
			Allocatable: map[string]int64{"nvidia.com/gpu": 3}}, sharing.Drain, ""},
	} {
		got := sharing.Reader{}.Read(c.node).Bad
		if len(got) != 1 || got[0].Text("n7") != text || got[0].Severity != c.severity || got[0].GPU != c.gpu || got[0].WholeNode() {
			t.Errorf("%+v, want %s with severity %v", got, text, c.severity)
		}
	}
	withdrawn := func(healthy int64) string {
		node := sharing.NodeObject{Capacity: map[string]int64{"nvidia.com/gpu": 4}, Allocatable: map[string]int64{"nvidia.com/gpu": healthy}}
		return sharing.Reader{}.Read(node).Bad[0].Key()
	}
	if withdrawn(3) != withdrawn(2) {
		t.Error("a second unhealthy card is another sign")
	}
	restarts := sharing.NodeObject{Capacity: map[string]int64{"nvidia.com/gpu": 4}, Allocatable: map[string]int64{"nvidia.com/gpu": 0}}
	if got := (sharing.Reader{}).Read(restarts).Bad; len(got) > 0 {
		t.Errorf("a device plugin that restarts: %+v", got)
	}
}

func TestADeviceIsRecognized(t *testing.T) {
	bad := sharing.BadGPU{UUID: "GPU-a", Device: "gpu-3"}
	for id, want := range map[string]bool{"GPU-a": true, "GPU-a::2": true, "GPU-b": false, "MIG-c": false, "gpu.nvidia.com/n7/gpu-3": true,
		"gpu.nvidia.com/n7/gpu-3-mig-1g5gb-19-0": true, "gpu.nvidia.com/n7/gpu-30": false, "gpu-3": false} {
		if bad.Is(id) != want {
			t.Errorf("%s: %t", id, !want)
		}
	}
}
