package raydemand

import "testing"

func TestAcceleratorsOfAnUnknownTypeMayBeOfAny(t *testing.T) {
	gpu := Bundle{CPU: Whole(4), GPU: One}
	if all := gpu.WithAnyAcceleratorType(); all["accelerator_type:A100"] != One || all["accelerator_type:T4"] != One || all[GPU] != One {
		t.Errorf("a node with a GPU has %v, want every type", all)
	}
	if len(gpu) != 2 {
		t.Errorf("the bundle itself became %v", gpu)
	}
	for name, b := range map[string]Bundle{
		"no accelerator": {CPU: Whole(4)},
		"no GPU":         {CPU: Whole(4), GPU: 0},
		"a known type":   {GPU: One, "accelerator_type:T4": One},
	} {
		if got := b.WithAnyAcceleratorType(); !got.Equal(b) {
			t.Errorf("%s: %v became %v", name, b, got)
		}
	}
}
