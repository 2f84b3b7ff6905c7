package sharing_test

import (
	"fmt"
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

// nodepools and doctor show every sign, once.
func TestEverySignOfABadGPUIsAProblem(t *testing.T) {
	device := func(taint string) sharing.NodeObject {
		return sharing.NodeObject{Devices: []sharing.DRADevice{{Name: "gpu-3", Type: "gpu", UUID: "GPU-a", MemoryMiB: 81559, Taint: taint}}}
	}
	agent := func(healthy bool, problem string) sharing.NodeObject {
		return sharing.NodeObject{Annotations: map[string]string{sharing.AgentAnnotation: fmt.Sprintf(
			`{"cards": [{"index": 3, "uuid": "GPU-a", "product": "NVIDIA H100 80GB HBM3", "memoryMiB": 81559, "healthy": %t, "problem": %q}]}`, healthy, problem)}}
	}
	for want, node := range map[string]sharing.NodeObject{
		"condition-bad: XIDErrors is True":                                                       {Conditions: map[string]string{"XIDErrors": "True"}},
		"gpu-watch: condition GPUClockThrottling is True":                                        {Conditions: map[string]string{"GPUClockThrottling": "True"}},
		"gpu-bad: taint nvidia.com/gpu-xid-error=true:NoSchedule":                                {Taints: []sharing.Taint{{Key: "nvidia.com/gpu-xid-error", Value: "true", Effect: "NoSchedule"}}},
		"gpu-bad: label dgxc.nvidia.com/nvsentinel-state=quarantined":                            {Labels: map[string]string{"dgxc.nvidia.com/nvsentinel-state": "quarantined"}},
		"device-unhealthy: the driver taints GPU-3: gpu.nvidia.com/xid":                          device("gpu.nvidia.com/xid"),
		"gpu-watch: example.com/maintenance, on GPU-3":                                           device("example.com/maintenance"),
		"device-unhealthy: the agent reports card 3 as unhealthy: XID 79: it has left":           agent(false, "XID 79: it has left"),
		"gpu-watch: memory rows are remapped at the next reset of the card, on GPU-3":            agent(true, "memory rows are remapped at the next reset of the card"),
		"devices-missing: nvidia.com/gpu: allocatable 3 of capacity 4: the others are unhealthy": {Capacity: map[string]int64{"nvidia.com/gpu": 4}, Allocatable: map[string]int64{"nvidia.com/gpu": 3}},
	} {
		got := sharing.Reader{}.Read(node)
		if len(got.Bad) != 1 || len(got.Problems) != 1 || got.Problems[0].String() != want {
			t.Errorf("signs %+v, problems %v, want %s", got.Bad, got.Problems, want)
		}
	}
	unannounced := sharing.NodeObject{Labels: map[string]string{"nvidia.com/gpu.present": "true"}, Conditions: map[string]string{"NetworkingReady": "False"}, Allocatable: map[string]int64{}}
	if got := (sharing.Reader{}).Read(unannounced).Problems; len(got) != 2 || got[1].Code != sharing.NothingAnnounced {
		t.Errorf("%v, want also what no sign explains", got)
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
