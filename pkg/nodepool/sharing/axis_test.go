package sharing_test

import (
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestInstancesAreMeasuredOnTheAxisOfAKnownProduct(t *testing.T) {
	read := func(product string) sharing.Card {
		report := `{"cards":[{"index":0,"uuid":"GPU-a","memoryMiB":40960,"healthy":true,"mig":{"enabled":true,"instances":[` +
			`{"profile":"3g.20gb","start":4}]}}]}`
		got := sharing.Reader{}.Read(sharing.NodeObject{Name: "n", Labels: map[string]string{"nvidia.com/gpu.product": product},
			Allocatable: quantities("nvidia.com/mig-3g.20gb", 1), Annotations: map[string]string{sharing.AgentAnnotation: report}})
		if len(got.PerCard) != 1 || len(got.PerCard[0].Instances) == 0 {
			t.Fatalf("cards %+v, problems %v", got.PerCard, got.Problems)
		}
		return got.PerCard[0]
	}
	card := read("NVIDIA-A100-SXM4-40GB")
	if card.MemoryUnits == nil || *card.MemoryUnits != 8 || card.Instances[0].Size == nil || *card.Instances[0].Size != 4 {
		t.Errorf("an axis of %v with %+v, want 8 units of which 3g.20gb takes 4", card.MemoryUnits, card.Instances)
	}
	if card := read("Some-Future-Card"); card.MemoryUnits != nil || card.Instances[0].Size != nil {
		t.Errorf("a card nobody knows is measured: %v, %+v", card.MemoryUnits, card.Instances)
	}
}
