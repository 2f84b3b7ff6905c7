package landing

import (
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

func TestAShapeLeavesOpenWhatClaimsSupply(t *testing.T) {
	for name, test := range map[string]struct {
		node     Node
		resource string
		want     Outlook
	}{
		"a shape, and the name of a DeviceClass":       {Node{Declared: true}, gpuinfo.ClassPrefix + "gpu.nvidia.com", Unsaid},
		"a shape, and a claim of a template":           {Node{Declared: true}, gpuinfo.ClaimPrefix + "ml.gpu", Unsaid},
		"a shape, and a name that a class may supply":  {Node{Declared: true, Open: true}, gpuinfo.NvidiaGPU, Unsaid},
		"a shape, and a name that no class can supply": {Node{Declared: true, Open: true}, "cpu", Never},
		"a node without devices of the DeviceClass":    {Node{}, gpuinfo.ClassPrefix + "gpu.nvidia.com", Never},
	} {
		test.node.Ready = true
		if got := new(PodShape).outlook(&test.node, mismatch{kind: notAnnounced, what: test.resource}); got != test.want {
			t.Errorf("%s: outlook %v, want %v", name, got, test.want)
		}
	}
}
