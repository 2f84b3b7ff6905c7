package sharing_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestALostCardMayHaveNoMemory(t *testing.T) {
	node := sharing.Reader{}.Read(sharing.NodeObject{Annotations: map[string]string{sharing.AgentAnnotation: `{"cards":[{"index":3,"problem":"lost"}]}`}})
	if len(node.PerCard) != 1 || node.PerCard[0].MemoryMiB != nil || node.PerCard[0].Healthy == nil || *node.PerCard[0].Healthy {
		t.Errorf("cards are %+v, problems %v", node.PerCard, node.Problems)
	}
}

func TestAReportOfAnotherTimeOrAnotherStartOfTheMachineIsNotCounted(t *testing.T) {
	noon := time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name, boot string
		written    time.Time
		seen       time.Time
		want       string
	}{
		{"just written", "b1", noon, noon, ""},
		{"two writes were missed", "b1", noon, noon.Add(45 * time.Minute), ""},
		{"nobody writes any more", "b1", noon, noon.Add(46 * time.Minute), "it is older than 45 minutes, so no agent is running there"},
		{"the clock of the machine is ahead", "b1", noon.Add(time.Hour), noon, "its time is more than 45 minutes ahead: the machine's clock is wrong"},
		{"of an agent that tells no time", "b1", time.Time{}, noon, "it has no time"},
		{"before the machine started anew", "b0", noon, noon, "the machine has rebooted since it was written"},
		{"a node of a file, of any age", "b1", noon, time.Time{}, ""},
		{"a node of a file, before its start", "b0", noon, time.Time{}, "the machine has rebooted since it was written"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			report := sharing.AgentReport{At: test.written, BootID: test.boot, Cards: []gpuinfo.Card{{Memory: new(gpuinfo.MiB(40960)), Problem: "XID 79"}}}
			value, err := report.Annotation()
			if err != nil {
				t.Fatal(err)
			}
			read := sharing.Reader{At: test.seen}.Read(sharing.NodeObject{
				BootID: "b1", Annotations: map[string]string{sharing.AgentAnnotation: value}, Allocatable: map[string]int64{"nvidia.com/gpu": 1},
			})
			want, cards := []sharing.Problem{{Code: sharing.AgentOutdated, Message: "heliostat.dev/gpus is ignored: " + test.want}}, 0
			if test.want == "" {
				want, cards = []sharing.Problem{{Code: sharing.DeviceUnhealthy, Message: "the agent reports card 0 as unhealthy: XID 79"}}, 1
			}
			if diff := cmp.Diff(want, read.Problems); diff != "" || len(read.PerCard) != cards || len(read.HealthyUnits) != cards {
				t.Errorf("cards %+v, well %v (-want +got):\n%s", read.PerCard, read.HealthyUnits, diff)
			}
		})
	}
}

func problemCodes(read sharing.GPUs) string {
	var codes []string
	for _, problem := range read.Problems {
		codes = append(codes, string(problem.Code))
	}
	return strings.Join(codes, " ")
}

// TestAUnitOfMemoryIsComparedWithTheCard has the units of a card, and what shows how much memory the card has.
func TestAUnitOfMemoryIsComparedWithTheCard(t *testing.T) {
	const a100 = "nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB nvidia.com/gpu.count=2"
	for _, test := range []struct {
		name, labels string
		perCard      int
		want         string
	}{
		{"nothing shows the memory of a card", "", 8192, "1 8192"},
		{"the label agrees", a100 + " nvidia.com/gpu.memory=81920", 81920, "1 81920"},
		{"a factor of 10 by the label", a100 + " nvidia.com/gpu.memory=81559", 8155, "10 81550"},
		{"a factor of 3 by the label", a100 + " nvidia.com/gpu.memory=81920", 27306, "3 81918"},
		{"a factor of 10 by the product", a100, 8155, "10 81550"},
		{"more than the card has", a100 + " nvidia.com/gpu.memory=81920", 163840, "1 163840"},
		{"no factor", a100 + " nvidia.com/gpu.memory=81920", 55000, "? ? memory-unit-unknown"},
		{"several factors", a100, 100, "? ? memory-unit-unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for memory, units := range map[string]map[string]int64{
				"volcano.sh/vgpu-memory": quantities("volcano.sh/vgpu-number", 20, "volcano.sh/vgpu-memory", 2*test.perCard, "volcano.sh/vgpu-cores", 200),
				"volcano.sh/gpu-memory":  quantities("volcano.sh/gpu-memory", 2*test.perCard, "volcano.sh/gpu-number", 2),
			} {
				read := sharing.Reader{}.Read(sharing.NodeObject{Labels: labels(test.labels), Allocatable: units})
				got := "? ?"
				if unit := read.MemoryMiB[memory]; unit > 0 {
					got = fmt.Sprint(unit, *read.CardMemoryMiB)
				}
				if got = strings.TrimSpace(got + " " + problemCodes(read)); got != test.want {
					t.Errorf("%s: got %s, want %s", memory, got, test.want)
				}
			}
		})
	}
}

// TestAFactorAppliesToWhatPodsHold checks that free memory is in MiB whatever pods and records count in.
func TestAFactorAppliesToWhatPodsHold(t *testing.T) {
	hami := sharing.NodeObject{Allocatable: quantities("nvidia.com/gpu", 10, "nvidia.com/gpumem", 8155),
		Annotations: map[string]string{"hami.io/node-nvidia-register": "GPU-a,10,81559,100,NVIDIA-NVIDIA H100 80GB HBM3,0,true,0,hami-core:"}}
	volcano := sharing.NodeObject{Labels: labels("nvidia.com/gpu.memory=81920"),
		Allocatable: quantities("volcano.sh/vgpu-number", 10, "volcano.sh/vgpu-memory", 8192, "volcano.sh/vgpu-cores", 100),
		Annotations: map[string]string{"volcano.sh/node-vgpu-register": "GPU-a,10,8192,NVIDIA-NVIDIA A100-SXM4-80GB,true,hami-core:"}}
	for name, test := range map[string]struct {
		node sharing.NodeObject
		pod  sharing.Pod
		want int64
	}{
		"HAMi records MiB":          {hami, pod(quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 4000), "hami.io/vgpu-devices-allocated", "GPU-a,NVIDIA,40000,0:;"), 41559},
		"HAMi's pods request units": {hami, pod(quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 4000)), 41559},
		"Volcano records units":     {volcano, pod(quantities("volcano.sh/vgpu-number", 1), "volcano.sh/vgpu-ids-new", "GPU-a,NVIDIA,2000,0:"), 61920},
		"and its pods request them": {volcano, pod(quantities("volcano.sh/vgpu-number", 1, "volcano.sh/vgpu-memory", 2000)), 61920},
	} {
		t.Run(name, func(t *testing.T) {
			test.node.Pods = []sharing.Pod{test.pod}
			read := sharing.Reader{}.Read(test.node)
			if len(read.PerCard) != 1 || read.PerCard[0].FreeMiB == nil || *read.PerCard[0].FreeMiB != test.want {
				t.Errorf("cards %+v, want one with %d MiB free", read.PerCard, test.want)
			}
		})
	}
}

func TestTwoAgentsOrALeftOverAreAContradiction(t *testing.T) {
	const register = "hami.io/node-nvidia-register"
	const devices = "GPU-a,10,24576,100,NVIDIA L4,0,true:GPU-b,10,24576,100,NVIDIA L4,0,false:"
	const volcano = "GPU-a,10,81920,NVIDIA-A100,true,hami-core:"
	whole := labels("nvidia.com/gpu.product=NVIDIA-L4 nvidia.com/gpu.count=2 nvidia.com/gpu.replicas=1 nvidia.com/gpu.sharing-strategy=none")
	for _, test := range []struct {
		name                  string
		annotation, text      string
		allocatable, capacity map[string]int64
		want                  string
	}{
		{"all shares that HAMi registers", register, devices, quantities("nvidia.com/gpu", 10), quantities("nvidia.com/gpu", 20), "vgpu device-unhealthy devices-missing"},
		{"those of healthy cards alone", register, devices, quantities("nvidia.com/gpu", 10), nil, "vgpu device-unhealthy"},
		{"cards of NVIDIA's plugin", register, devices, quantities("nvidia.com/gpu", 2), quantities("nvidia.com/gpu", 2), "unknown register-contradicted"},
		{"shares of another plugin", register, devices, quantities("nvidia.com/gpu", 8), quantities("nvidia.com/gpu", 8), "unknown register-contradicted"},
		{"no plugin", register, devices, quantities("nvidia.com/gpu", 0), quantities("nvidia.com/gpu", 0), "vgpu device-unhealthy"},
		{"Volcano's plugin is gone, and NVIDIA's announces cards", "volcano.sh/node-vgpu-register", volcano,
			quantities("nvidia.com/gpu", 2, "volcano.sh/vgpu-number", 0, "volcano.sh/vgpu-memory", 0), quantities("nvidia.com/gpu", 2, "volcano.sh/vgpu-number", 20), "whole"},
		{"Volcano's older plugin is gone", "", "", quantities("nvidia.com/gpu", 2, "volcano.sh/gpu-memory", 0), quantities("nvidia.com/gpu", 2, "volcano.sh/gpu-memory", 49152), "whole"},
		{"ACK's plugin is gone", "", "", quantities("nvidia.com/gpu", 2, "aliyun.com/gpu-mem", 0), quantities("nvidia.com/gpu", 2, "aliyun.com/gpu-mem", 48), "whole"},
		{"Volcano's plugin does not answer, and nothing else is there", "volcano.sh/node-vgpu-register", volcano,
			quantities("volcano.sh/vgpu-number", 0), quantities("volcano.sh/vgpu-number", 20), "vgpu devices-missing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			read := sharing.Reader{}.Read(sharing.NodeObject{Labels: whole, Allocatable: test.allocatable, Capacity: test.capacity,
				Annotations: map[string]string{test.annotation: test.text}})
			if got := strings.TrimSpace(string(read.Kind) + " " + problemCodes(read)); got != test.want {
				t.Errorf("got %s, want %s: %v", got, test.want, read.Problems)
			}
		})
	}
}

func TestACordonedCardHasNoRoom(t *testing.T) {
	const register = `[{"id":"GPU-a","count":10,"devmem":24576,"devcore":100,"type":"NVIDIA L4","mode":"hami-core","health":true},{"id":"GPU-b","index":1,"count":10,"devmem":24576,"devcore":100,"type":"NVIDIA L4","mode":"hami-core","health":true}]`
	for name, test := range map[string]struct{ cordon, want string }{
		"one card":                {"GPU-a", "0 0/0/?!, 1 ?/?/?, 10 units, device-cordoned"},
		"spaces and empty places": {" GPU-b ,,", "0 ?/?/?, 1 0/0/?!, 10 units, device-cordoned"},
		"a card of another node":  {"GPU-z", "0 ?/?/?, 1 ?/?/?, 0 units, label-unreadable"},
		"none":                    {"", "0 ?/?/?, 1 ?/?/?, 0 units, "},
	} {
		t.Run(name, func(t *testing.T) {
			read := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: quantities("nvidia.com/gpu", 20),
				Annotations: map[string]string{"hami.io/node-nvidia-register": register, "hami.io/device-cordon": test.cordon}})
			got := fmt.Sprintf("%s, %d units, %s", cardText(read.PerCard), read.HealthyUnits["nvidia.com/gpu"], problemCodes(read))
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// HAMi's scheduler drops the cards of a node whose agent does not answer.
func TestCardsOfASilentAgentHaveNoRoom(t *testing.T) {
	const register = `[{"id":"GPU-a","count":10,"devmem":24576,"devcore":100,"type":"NVIDIA L4","mode":"hami-core","health":true}]`
	for handshake, want := range map[string]string{
		"Deleted_2026.11.30 10:00:00":     "0 0/0/?!, agent-silent",
		"Requesting_2026.11.30 10:00:00":  "0 ?/?/?, ",
		"Reported 2026-11-30 10:00:00 +0": "0 ?/?/?, ",
	} {
		read := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: quantities("nvidia.com/gpu", 10),
			Annotations: map[string]string{"hami.io/node-nvidia-register": register, "hami.io/node-handshake": handshake}})
		if got := cardText(read.PerCard) + ", " + problemCodes(read); got != want {
			t.Errorf("%s: got %q, want %q", handshake, got, want)
		}
		if well, known := read.HealthyUnits["nvidia.com/gpu"]; known != (read.PerCard[0].Problem != "") || well != 0 {
			t.Errorf("%s: %d healthy units, known: %t", handshake, well, known)
		}
	}
}

func TestCardsForVirtualMachinesAreNoUnknownGPUs(t *testing.T) {
	units := quantities("nvidia.com/GA102GL_A10", 2, "nvidia.com/gpu", 0)
	for mode, want := range map[string]string{
		"vm-passthrough": "for-virtual-machines", "vm-vgpu": "for-virtual-machines", "container": "resource-not-known no-device-plugin",
	} {
		read := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: units,
			Labels: labels("nvidia.com/gpu.present=true nvidia.com/gpu.deploy.vfio-manager=true nvidia.com/gpu.workload.config=" + mode)})
		if got := problemCodes(read); got != want {
			t.Errorf("%s: problems %s, want %s", mode, got, want)
		}
	}
}
