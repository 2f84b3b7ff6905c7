package nodepool

import (
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

func TestAnInstanceBlocksWhatLargerOnesCouldNoMoreLie(t *testing.T) {
	product, known := gpuinfo.ProductOf("NVIDIA-A100-SXM4-40GB")
	if !known {
		t.Fatal("the A100 is not known")
	}
	at := func(profile string, start int, free bool) CardInstance {
		return CardInstance{Profile: profile, Start: &start, Free: &free}
	}
	empty := Card{Instances: []CardInstance{}}
	started := Card{Instances: []CardInstance{at("1g.5gb", 6, false)}}
	full := Card{Instances: []CardInstance{at("7g.40gb", 0, false)}}
	waiting := Card{Instances: []CardInstance{at("7g.40gb", 0, true)}}
	onEmpty, ok := empty.blocks(product, "1g.5gb")
	onStarted, alsoOK := started.blocks(product, "1g.5gb")
	if !ok || !alsoOK || onStarted >= onEmpty || onEmpty < 1 {
		t.Errorf("one more blocks %d on an empty card and %d beside another", onEmpty, onStarted)
	}
	if n, ok := waiting.blocks(product, "1g.5gb"); !ok || n != onEmpty {
		t.Errorf("beside an instance that is free: %d, %v, want %d", n, ok, onEmpty)
	}
	if _, ok := full.blocks(product, "1g.5gb"); ok {
		t.Error("a full card has room")
	}
	if _, ok := (Card{}).blocks(product, "1g.5gb"); ok {
		t.Error("a card that tells nothing has room")
	}
	if _, ok := (Card{Instances: []CardInstance{{Profile: "1g.5gb"}}}).blocks(product, "1g.5gb"); ok {
		t.Error("a card that does not tell what is in use has room")
	}
}
