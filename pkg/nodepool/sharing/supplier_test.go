package sharing

import (
	"errors"
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

func TestWhoSuppliesAnExtendedResource(t *testing.T) {
	for name, want := range map[string]struct{ extender, class bool }{
		"nvidia.com/gpu":                {false, true},
		"nvidia.com/gpumem":             {true, true},
		"nvidia.com/gpumem-percentage":  {true, true},
		"huawei.com/Ascend910B4":        {false, true},
		"huawei.com/Ascend910B4-memory": {true, true},
		"huawei.com/Ascend310P-core":    {true, true},
		"hygon.com/hcumem":              {true, true},
		"cpu":                           {false, false},
		"kubernetes.io/anything":        {false, false},
		"deviceclass.resource.kubernetes.io/gpu.nvidia.com": {false, true},
	} {
		if extender, class := ByExtender(name), MayBeClass(name); extender != want.extender || class != want.class {
			t.Errorf("%s: by an extender %v, maybe by a class %v; want %+v", name, extender, class, want)
		}
	}
}

func TestTheConfigurationSaysWhatIsNoGPUAndWhatNodesDoNotBound(t *testing.T) {
	reader := Reader{Names: gpuinfo.Names{Configured: []gpuinfo.Resource{
		{Name: "nvidia.com/pods_vf", Kind: gpuinfo.NoGPU}, {Name: "acme.com/gpu-share", Kind: gpuinfo.Elsewhere},
	}}}
	for _, name := range []string{"nvidia.com/pods_vf", "acme.com/gpu-share"} {
		if _, err := reader.Names.Resource(name); !errors.Is(err, gpuinfo.ErrNotGPU) {
			t.Errorf("%s: %v, want %v", name, err, gpuinfo.ErrNotGPU)
		}
	}
	if elsewhere := reader.SuppliedElsewhere(); len(elsewhere) != 1 || !elsewhere["acme.com/gpu-share"] {
		t.Errorf("supplied elsewhere: %v, want acme.com/gpu-share", elsewhere)
	}
	if read := reader.Read(NodeObject{Allocatable: map[string]int64{"nvidia.com/pods_vf": 8}}); len(read.Problems) > 0 {
		t.Errorf("problems %v of a node with a device that is no GPU, want none", read.Problems)
	}
}
