package landing

import (
	"fmt"
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

func TestAnInstanceBlocksWhatLargerOnesCouldNoMoreLie(t *testing.T) {
	product, known := gpuinfo.ProductOf("NVIDIA-A100-SXM4-40GB")
	if !known {
		t.Fatal("the A100 is not known")
	}
	at := func(profile string, start int, free bool) sharing.CardInstance {
		return sharing.CardInstance{Profile: profile, Start: &start, Free: &free}
	}
	empty := sharing.Card{Instances: []sharing.CardInstance{}}
	started := sharing.Card{Instances: []sharing.CardInstance{at("1g.5gb", 6, false)}}
	full := sharing.Card{Instances: []sharing.CardInstance{at("7g.40gb", 0, false)}}
	waiting := sharing.Card{Instances: []sharing.CardInstance{at("7g.40gb", 0, true)}}
	onEmpty, ok := empty.PlacesLost(product, "1g.5gb")
	onStarted, alsoOK := started.PlacesLost(product, "1g.5gb")
	if !ok || !alsoOK || onStarted >= onEmpty || onEmpty < 1 {
		t.Errorf("one more blocks %d on an empty card and %d beside another", onEmpty, onStarted)
	}
	if n, ok := waiting.PlacesLost(product, "1g.5gb"); !ok || n != onEmpty {
		t.Errorf("beside an instance that is free: %d, %v, want %d", n, ok, onEmpty)
	}
	if _, ok := full.PlacesLost(product, "1g.5gb"); ok {
		t.Error("a full card has room")
	}
	if _, ok := (sharing.Card{}).PlacesLost(product, "1g.5gb"); ok {
		t.Error("a card that tells nothing has room")
	}
	if _, ok := (sharing.Card{Instances: []sharing.CardInstance{{Profile: "1g.5gb"}}}).PlacesLost(product, "1g.5gb"); ok {
		t.Error("a card that does not tell what is in use has room")
	}
}

// The report of the node agent shows how the cards are partitioned, and the pods on the node show which parts are in
// use.
func TestThePoolWhoseCardsAreInUseAlreadyIsToldFromAnEmptyOne(t *testing.T) {
	const agent = `{"cards":[{"index":0,"uuid":"GPU-a","product":"NVIDIA A100-SXM4-40GB","memoryMiB":40960,"freeMiB":null,"healthy":true,"problem":"","mig":{"enabled":true,"instances":[%s]}}]}`
	node := func(instances string, units map[string]int64, pods []sharing.Pod) sharing.GPUs {
		return sharing.Reader{}.Read(sharing.NodeObject{
			Name: "n", Allocatable: units, Capacity: units, Pods: pods, Annotations: map[string]string{sharing.AgentAnnotation: fmt.Sprintf(agent, instances)},
			Labels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/mig.strategy": "mixed", "nvidia.com/gpu.count": "1"},
		})
	}
	w := sliceRequest{resource: gpuinfo.Resource{Name: "nvidia.com/mig-1g.5gb", Kind: gpuinfo.MIG, Profile: "1g.5gb", Role: gpuinfo.Devices}, units: 1}
	const cut = `{"profile":"3g.20gb","start":0},{"profile":"1g.5gb","start":6}`
	units := map[string]int64{"nvidia.com/mig-1g.5gb": 1, "nvidia.com/mig-3g.20gb": 1}
	busy := []sharing.Pod{{Name: "p", Node: "n", Requests: map[string]int64{"nvidia.com/mig-1g.5gb": 1}}}
	empty, started := w.blocks([]sharing.GPUs{node(cut, units, []sharing.Pod{})}), w.blocks([]sharing.GPUs{node(cut, units, busy)})
	if empty == nil || started == nil || *started >= *empty {
		t.Errorf("blocks %v where nothing is in use, %v beside an instance that is", empty, started)
	}
	if n := w.blocks([]sharing.GPUs{node(cut, units, nil)}); n != nil {
		t.Errorf("blocks %d where pods are not known", *n)
	}
}
