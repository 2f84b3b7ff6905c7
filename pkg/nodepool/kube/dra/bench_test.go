package dra

import (
	"fmt"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
)

// BenchmarkByNode counts what 100 nodes with 8 cards supply, by name and by a claim with a selector, when nothing is
// known and after a claim of one node has changed.
func BenchmarkByNode(b *testing.B) {
	var objects Objects
	t := &testing.T{}
	objects.PutClass(read[resourcev1.DeviceClass](t, gpuClass))
	objects.PutTemplate(read[resourcev1.ResourceClaimTemplate](t, exactly(`, selectors: [{cel: {expression: "device.attributes['gpu.example.com'].model == 'a100'"}}]`)))
	slice := cards("a100", "a100", "a100", "a100", "a100", "a100", "a100", "a100")
	for i := range 100 {
		node := fmt.Sprint("n", i)
		objects.PutSlice(read[resourcev1.ResourceSlice](t, strings.NewReplacer("n1,", node+",", "name: s}", "name: "+node+"}").Replace(slice)))
	}
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			objects.known = nil
			if nodes, _ := objects.ByNode(); nodes["n7"].Units["nvidia.com/gpu"].All != 8 {
				b.Fatal(nodes["n7"])
			}
		}
	})
	b.Run("one changed", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			objects.PutClaim(read[resourcev1.ResourceClaim](t, fmt.Sprintf(`{metadata: {name: c, namespace: ns}, status: {allocation: {devices: {results: [{request: gpu, driver: gpu.example.com, pool: n7, device: gpu-%d}]}}}}`, i%8)))
			if nodes, _ := objects.ByNode(); nodes["n7"].Units["nvidia.com/gpu"].Free != 7 {
				b.Fatal(nodes["n7"])
			}
		}
	})
}
