package sharing_test

import (
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

const ofVolcano = "volcano.sh/node-vgpu-register"

// volcanoNode is a node of Volcano's vGPU plugin with two cards of eight shares each, as in the report
// volcano-memory-factor-10.
func volcanoNode(register, marks string, memory int) sharing.NodeObject {
	units := quantities("volcano.sh/vgpu-number", 16, "volcano.sh/vgpu-memory", memory, "volcano.sh/vgpu-cores", 200)
	return sharing.NodeObject{Name: "n1", Labels: labels(marks), Allocatable: units, Capacity: units, Pods: []sharing.Pod{},
		Annotations: map[string]string{ofVolcano: register}}
}

func TestARegisterOfVolcanoThatCannotBeReadLeavesTheCardsUnknown(t *testing.T) {
	for name, test := range map[string]struct{ register, want string }{
		"damaged":      {"GPU-a,8,8192,NVIDIA-NVIDIA A100-SX", "4 fields, want 6"},
		"no number":    {"GPU-a,8,80Gi,NVIDIA-NVIDIA A100-SXM4-80GB,true,hami-core:", "80Gi"},
		"JSON":         {`[{"id":"GPU-a","count":8,"devmem":8192,"type":"NVIDIA A100-SXM4-80GB","health":true}]`, "it is JSON"},
		"damaged JSON": {`[{"id":"GPU-a","devmem":81`, "it is JSON"},
		"no card":      {":", "it names no card"},
		"empty":        {"", "it names no card"},
	} {
		for _, marks := range []string{"", "n/gpu.product=NVIDIA-A100-SXM4-80GB n/gpu.memory=81920"} {
			got := sharing.Reader{}.Read(volcanoNode(test.register, marks, 16384))
			if len(got.Problems) != 1 || got.Problems[0].Code != sharing.RegisterUnreadable || got.Problems[0].Annotation != ofVolcano ||
				!strings.Contains(got.Problems[0].Message, test.want) {
				t.Errorf("%s: problems %v, want one with %s", name, got.Problems, test.want)
			}
			_, known := got.MemoryUnit("volcano.sh/vgpu-memory")
			_, bounded := got.LargestCard("volcano.sh/vgpu-memory")
			if s := summary(got); known || bounded || got.CardMemoryMiB != nil || got.HealthyUnits != nil || len(got.PerCard) > 0 ||
				s != "vgpu unknown 2 null register-unreadable" {
				t.Errorf("%s: %s, unit known %t, card known %t, healthy %v", name, s, known, bounded, got.HealthyUnits)
			}
		}
	}
}

func TestEachCardOfVolcanoCountsForItself(t *testing.T) {
	const a100, a30, t4 = "GPU-a,8,8192,NVIDIA-NVIDIA A100-SXM4-80GB,true,hami-core:", "GPU-b,8,2457,NVIDIA-NVIDIA A30,true,hami-core:",
		"GPU-c,8,1536,NVIDIA-Tesla T4,true,hami-core:"
	for _, test := range []struct {
		name, register, marks, want string
		memory                      int
	}{
		{"one factor explains both cards", a100 + a30, "", `vgpu limit 2 {"volcano.sh/vgpu-memory":10}; 81920 24570`, 10649},
		{"as plugins until 1.11 write them, without a mode", strings.ReplaceAll(a100+a30, ",hami-core", ""), "",
			`vgpu limit 2 {"volcano.sh/vgpu-memory":10}; 81920 24570`, 10649},
		{"in either order", a30 + a100, "", `vgpu limit 2 {"volcano.sh/vgpu-memory":10}; 24570 81920`, 10649},
		{"labels name one of the products, and are of no other", a30 + a100, "n/gpu.product=NVIDIA-A100-SXM4-80GB n/gpu.memory=81920",
			`vgpu limit 2 {"volcano.sh/vgpu-memory":10}; 24570 81920`, 10649},
		{"a card without MIG by its data sheet", a100 + t4, "", `vgpu limit 2 {"volcano.sh/vgpu-memory":10}; 81920 15360`, 9728},
		{"no one factor explains both", "GPU-a,8,8192,NVIDIA-NVIDIA A100-SXM4-80GB,true,hami-core:GPU-b,8,6144,NVIDIA-NVIDIA A30,true,hami-core:", "",
			"vgpu limit 2 null memory-unit-unknown; ? ?", 14336},
		{"a card that nothing knows, with fewer units than any has MiB", "GPU-a,8,1610,NVIDIA-Tesla X9,true,hami-core:GPU-b,8,1610,NVIDIA-Tesla X9,true,hami-core:", "",
			"vgpu limit 2 null memory-unit-unknown; ? ?", 3220},
		{"such a card in MiB", "GPU-a,8,16100,NVIDIA-Tesla X9,true,hami-core:GPU-b,8,16100,NVIDIA-Tesla X9,true,hami-core:", "",
			`vgpu limit 2 {"volcano.sh/vgpu-memory":1}; 16100 16100`, 32200},
	} {
		t.Run(test.name, func(t *testing.T) {
			read := sharing.Reader{}.Read(volcanoNode(test.register, test.marks, test.memory))
			got := summary(read) + ";"
			for _, card := range read.PerCard {
				if card.MemoryMiB == nil {
					got += " ?"
					continue
				}
				got += fmt.Sprint(" ", *card.MemoryMiB)
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s\n%v", got, test.want, read.Problems)
			}
			if _, alike := read.UnitsPerCard["volcano.sh/vgpu-memory"]; alike == read.Differ() && read.PerCard[0].MemoryMiB != nil {
				t.Errorf("units of each card %v, and the cards differ: %t", read.UnitsPerCard, read.Differ())
			}
		})
	}
}
