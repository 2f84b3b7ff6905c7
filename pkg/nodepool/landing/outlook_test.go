package landing

import (
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

func TestAShapeLeavesOpenWhatClaimsSupply(t *testing.T) {
	class, all := map[string]string{gpuinfo.NvidiaGPU: "a class"}, map[string]string{"": "all are unknown"}
	for name, test := range map[string]struct {
		node     Node
		resource string
		want     outlook
	}{
		"a shape, and a name that a class supplies":    {Node{Declared: true, Open: class}, gpuinfo.NvidiaGPU, unsaid},
		"a shape, and a name that no class supplies":   {Node{Declared: true, Open: class}, "amd.com/gpu", never},
		"a shape, and a name that a class may supply":  {Node{Declared: true, Open: all}, gpuinfo.NvidiaGPU, unsaid},
		"a shape, and a name that no class can supply": {Node{Declared: true, Open: all}, "cpu", never},
		"a shape, while nobody says what is supplied":  {Node{Declared: true}, gpuinfo.NvidiaGPU, never},
		"a node without devices of the DeviceClass":    {Node{}, gpuinfo.ClassPrefix + "gpu.nvidia.com", never},
	} {
		test.node.Ready = true
		if got := new(PodShape).outlook(&test.node, mismatch{kind: notAnnounced, what: test.resource}); got != test.want {
			t.Errorf("%s: outlook %v, want %v", name, got, test.want)
		}
	}
}
