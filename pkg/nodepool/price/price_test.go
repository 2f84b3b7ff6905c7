package price_test

import (
	"math"
	"testing"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/price"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func quantities(amounts map[string]int64) landing.Quantities {
	q := landing.Quantities{}
	for name, n := range amounts {
		q[name] = raydemand.Whole(n)
	}
	return q
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

// TestAPodPaysForItsShareOfTheNode has one case for each way to hand out GPUs.
func TestAPodPaysForItsShareOfTheNode(t *testing.T) {
	read := func(allocatable map[string]int64, labels map[string]string) *sharing.GPUs {
		gpus := sharing.Reader{}.Read(sharing.NodeObject{Name: "n", Labels: labels, Allocatable: allocatable})
		return &gpus
	}
	a100 := map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": "8",
		"nvidia.com/gpu.memory": "40960", "nvidia.com/gpu.present": "true"}
	with := func(base map[string]string, more ...string) map[string]string {
		labels := map[string]string{}
		for key, value := range base {
			labels[key] = value
		}
		for i := 0; i < len(more); i += 2 {
			labels[more[i]] = more[i+1]
		}
		return labels
	}
	// registered reads a node of two cards whose agent registers them in an annotation.
	registered := func(annotation, register string, allocatable map[string]int64) *sharing.GPUs {
		gpus := sharing.Reader{}.Read(sharing.NodeObject{Name: "n", Annotations: map[string]string{annotation: register}, Allocatable: allocatable})
		return &gpus
	}
	hami := registered("hami.io/node-nvidia-register", "GPU-0,10,40960,100,A100,0,true:GPU-1,10,40960,100,A100,0,true:",
		map[string]int64{"nvidia.com/gpu": 20})
	volcano := registered("volcano.sh/node-vgpu-register", "GPU-0,10,40960,A100,true,hami-core:GPU-1,10,40960,A100,true,hami-core:",
		map[string]int64{"volcano.sh/vgpu-number": 20, "volcano.sh/vgpu-memory": 2 * 40960, "volcano.sh/vgpu-cores": 200})
	cut := registered("hami.io/node-nvidia-register", "GPU-0,7,81920,100,NVIDIA A100-SXM4-80GB,0,true,0,mig:GPU-1,7,81920,100,NVIDIA A100-SXM4-80GB,0,true,1,mig:",
		map[string]int64{"nvidia.com/gpu": 14})
	koordinator := read(map[string]int64{"koordinator.sh/gpu.shared": 800, "koordinator.sh/gpu-core": 800, "koordinator.sh/gpu-memory-ratio": 800}, a100)
	for name, c := range map[string]struct {
		gpus  *sharing.GPUs
		pod   map[string]int64
		want  float64
		known bool
	}{
		"CPUs of a node without GPUs":              {nil, map[string]int64{"cpu": 16}, 0.25, true},
		"no CPUs on a node with GPUs":              {read(map[string]int64{"nvidia.com/gpu": 8}, a100), map[string]int64{"cpu": 16}, 0, true},
		"whole cards":                              {read(map[string]int64{"nvidia.com/gpu": 8}, a100), map[string]int64{"nvidia.com/gpu": 2}, 2.0 / 8, true},
		"a MIG instance of a mixed node":           {read(map[string]int64{"nvidia.com/mig-1g.5gb": 56}, with(a100, "nvidia.com/mig.strategy", "mixed")), map[string]int64{"nvidia.com/mig-1g.5gb": 2}, 2.0 / 56, true},
		"a large MIG instance":                     {read(map[string]int64{"nvidia.com/mig-3g.20gb": 16}, with(a100, "nvidia.com/mig.strategy", "mixed")), map[string]int64{"nvidia.com/mig-3g.20gb": 1}, 1.0 / 16, true},
		"a time-sliced card":                       {read(map[string]int64{"nvidia.com/gpu": 32}, with(a100, "nvidia.com/gpu.replicas", "4", "nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-SHARED", "nvidia.com/gpu.sharing-strategy", "time-slicing")), map[string]int64{"nvidia.com/gpu": 1}, 1.0 / 32, true},
		"a card shared with MPS":                   {read(map[string]int64{"nvidia.com/gpu": 16}, with(a100, "nvidia.com/gpu.replicas", "2", "nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-SHARED", "nvidia.com/gpu.sharing-strategy", "mps")), map[string]int64{"nvidia.com/gpu": 3}, 3.0 / 16, true},
		"memory in units of a GiB":                 {read(map[string]int64{"aliyun.com/gpu-mem": 60, "aliyun.com/gpu-count": 4}, nil), map[string]int64{"aliyun.com/gpu-mem": 3}, 3.0 / 60, true},
		"cards that only their units count":        {read(map[string]int64{"nvidia.com/gpu": 4}, nil), map[string]int64{"nvidia.com/gpu": 1}, 1.0 / 4, true},
		"a sliced card that has no count":          {read(map[string]int64{"nvidia.com/gpu": 8}, map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-SHARED", "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}), map[string]int64{"nvidia.com/gpu": 1}, 1.0 / 8, true},
		"a MIG instance under a plain name":        {read(map[string]int64{"nvidia.com/gpu": 56}, map[string]string{"nvidia.com/mig.strategy": "single", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/gpu.count": "56", "nvidia.com/gpu.memory": "4864", "node.kubernetes.io/instance-type": "p4d.24xlarge"}), map[string]int64{"nvidia.com/gpu": 1}, 1.0 / 56, true},
		"HAMi, by memory":                          {hami, map[string]int64{"nvidia.com/gpu": 2, "nvidia.com/gpumem": 10240}, 2 * 0.25 / 2, true},
		"HAMi, a MIG instance":                     {cut, map[string]int64{"nvidia.com/gpu": 1, "nvidia.com/gpumem": 12000}, 19968.0 / 81920 / 2, true},
		"HAMi, by percent of the memory":           {hami, map[string]int64{"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 50}, 0.5 / 2, true},
		"HAMi, all memory and a part of the cores": {hami, map[string]int64{"nvidia.com/gpu": 1, "nvidia.com/gpucores": 30}, 1.0 / 2, true},
		"HAMi, the whole card":                     {hami, map[string]int64{"nvidia.com/gpu": 1}, 1.0 / 2, true},
		"Volcano, by memory":                       {volcano, map[string]int64{"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": 20480}, 0.5 / 2, true},
		"Volcano, by percent of the memory":        {volcano, map[string]int64{"volcano.sh/vgpu-number": 2, "volcano.sh/vgpu-memory-percentage": 25}, 2 * 0.25 / 2, true},
		"Koordinator, by memory":                   {koordinator, map[string]int64{"koordinator.sh/gpu.shared": 1, "koordinator.sh/gpu-memory-ratio": 50}, 0.5 / 8, true},
		"Koordinator, by cores of two":             {koordinator, map[string]int64{"koordinator.sh/gpu.shared": 2, "koordinator.sh/gpu-core": 120}, 1.2 / 8, true},
		"memory percent of nothing that is":        {read(map[string]int64{"nvidia.com/gpu": 8}, a100), map[string]int64{"nvidia.com/gpumem": 1}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			node := &landing.Node{Name: "n", Allocatable: quantities(map[string]int64{"cpu": 64}), GPUs: c.gpus}
			got, known := price.Share(gpuinfo.Names{}, node, &landing.PodShape{Requests: quantities(c.pod)})
			if known != c.known || !near(got, c.want) {
				t.Errorf("share %v (known %v), want %v (%v)", got, known, c.want, c.known)
			}
		})
	}
	t.Run("a part of cards by KAI", func(t *testing.T) {
		node := &landing.Node{Name: "n", Labels: a100, Allocatable: quantities(map[string]int64{"cpu": 64, "nvidia.com/gpu": 8}),
			GPUs: read(map[string]int64{"nvidia.com/gpu": 8}, a100)}
		for name, c := range map[string]struct {
			annotations map[string]string
			want        float64
			known       bool
		}{
			"a fraction":                 {map[string]string{"gpu-fraction": "0.6"}, 0.6 / 8, true},
			"of two cards":               {map[string]string{"gpu-fraction": "0.25", "gpu-fraction-num-devices": "2"}, 2 * 0.25 / 8, true},
			"memory":                     {map[string]string{"gpu-memory": "10225"}, 0.25 / 8, true}, // KAI counts 40,900 MiB
			"what KAI's webhook refuses": {map[string]string{"gpu-fraction": "2"}, 0, false},
		} {
			shape := &landing.PodShape{Requests: quantities(map[string]int64{"cpu": 16}),
				Share: sharing.CardShareOf(c.annotations, func() bool { return false })}
			if got, known := price.Share(gpuinfo.Names{}, node, shape); known != c.known || !near(got, c.want) {
				t.Errorf("%s: share %v (known %v), want %v (%v)", name, got, known, c.want, c.known)
			}
		}
	})
	t.Run("claims", func(t *testing.T) {
		node := &landing.Node{Allocatable: quantities(map[string]int64{"cpu": 64})}
		if _, known := price.Share(gpuinfo.Names{}, node, &landing.PodShape{Claims: true}); known {
			t.Error("the share of a pod with ResourceClaims is known")
		}
	})
}

// TestTheInstancesOfACardCostNoMoreThanTheCard has all cards of a node cut into 4g.20gb, 2g.10gb and 1g.5gb.
func TestTheInstancesOfACardCostNoMoreThanTheCard(t *testing.T) {
	units := map[string]int64{"nvidia.com/mig-4g.20gb": 8, "nvidia.com/mig-2g.10gb": 8, "nvidia.com/mig-1g.5gb": 8}
	gpus := sharing.Reader{}.Read(sharing.NodeObject{Name: "n", Allocatable: units, Labels: map[string]string{
		"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.memory": "40960",
		"nvidia.com/mig.strategy": "mixed"}})
	sum := 0.0
	for name := range units {
		part, known := price.Share(gpuinfo.Names{}, &landing.Node{GPUs: &gpus}, &landing.PodShape{Requests: quantities(map[string]int64{name: 1})})
		if !known || part <= 0 {
			t.Errorf("%s costs %v (known %v)", name, part, known)
		}
		sum += 8 * part
	}
	if sum < 0.8 || sum > 1 {
		t.Errorf("all instances cost %v of the node", sum)
	}
}

func TestThePriceOfANodeIsThatOfSpotThenOfItsPoolThenOfItsType(t *testing.T) {
	node := &landing.Node{Name: "n", Pool: "train", Labels: map[string]string{"node.kubernetes.io/instance-type": "p4d.24xlarge"}}
	spot := &landing.Node{Name: "s", Labels: map[string]string{"node.kubernetes.io/instance-type": "p4d.24xlarge", "karpenter.sh/capacity-type": "spot"}}
	former := &landing.Node{Labels: map[string]string{"beta.kubernetes.io/instance-type": "p4d.24xlarge"}}
	file := landing.Config{Pools: []landing.Spec{{Name: "train", Price: new(5.0)}}, InstancePrices: map[string]float64{"p4d.24xlarge": 6}}
	for name, c := range map[string]struct {
		book  *price.Book
		node  *landing.Node
		want  float64
		known bool
	}{
		"no prices":              {nil, node, 0, false},
		"by the former label":    {&price.Book{InstanceTypes: map[string]float64{"p4d.24xlarge": 7}}, former, 7, true},
		"by instance type":       {&price.Book{InstanceTypes: map[string]float64{"p4d.24xlarge": 7}}, node, 7, true},
		"by pool":                {&price.Book{Pools: map[string]float64{"train": 8}, InstanceTypes: map[string]float64{"p4d.24xlarge": 7}}, node, 8, true},
		"spot":                   {&price.Book{Spot: map[string]float64{"p4d.24xlarge": 2}}, spot, 2, true},
		"not spot":               {&price.Book{Spot: map[string]float64{"p4d.24xlarge": 2}}, node, 0, false},
		"the pools file by pool": {price.Of(file, gpuinfo.Names{}), node, 5, true},
		"the pools file by type": {price.Of(file, gpuinfo.Names{}), &landing.Node{Labels: node.Labels}, 6, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := c.book.Node(c.node)
			if got != c.want || known != c.known {
				t.Errorf("%v (%v), want %v (%v)", got, known, c.want, c.known)
			}
		})
	}
	half := &landing.Node{Pool: "train", Allocatable: quantities(map[string]int64{"cpu": 96})}
	if got, known := (&price.Book{Pools: map[string]float64{"train": 22}}).Pod(half, &landing.PodShape{Requests: quantities(map[string]int64{"cpu": 48})}); !known || !near(got, 11) {
		t.Errorf("half a node costs %v (%v)", got, known)
	}
}
