package sharing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// cutNode is a node of HAMi whose cards are cut on request, one for each UUID.
func cutNode(model, more string, uuids ...string) sharing.NodeObject {
	var devices []string
	for i, uuid := range uuids {
		devices = append(devices, fmt.Sprintf(`{"id":%q,"index":%d,"count":7,"devmem":81920,"devcore":100,"type":%q,"mode":"mig","health":true%s}`, uuid, i, model, more))
	}
	return sharing.NodeObject{Allocatable: quantities("nvidia.com/gpu", 7*len(uuids)),
		Annotations: map[string]string{"hami.io/node-nvidia-register": "[" + strings.Join(devices, ",") + "]"}}
}

const registeredProfiles = `,"migProfiles":[{"name":"7g.80gb","memoryMB":80384,"core":100,"sliceCount":7},{"name":"1g.10gb","memoryMB":9728,"core":14,"sliceCount":1},` +
	`{"name":"2g.20gb","memoryMB":19968,"core":29,"sliceCount":2,"placements":[{"start":0,"size":2}]}]`

func TestARequestTakesTheSmallestProfileThatHoldsIt(t *testing.T) {
	const volcano = "volcano.sh/node-vgpu-register"
	a100 := cutNode("NVIDIA A100-SXM4-80GB", "", "GPU-a")
	ofVolcano := sharing.NodeObject{Allocatable: quantities("volcano.sh/vgpu-number", 7, "volcano.sh/vgpu-memory", 8192, "volcano.sh/vgpu-cores", 100),
		Annotations: map[string]string{volcano: "GPU-a,7,8192,NVIDIA-NVIDIA A100-SXM4-80GB,true,mig:"}}
	for _, test := range []struct {
		name string
		node sharing.NodeObject
		mib  int64
		want string
	}{
		{"the smallest that is large enough", a100, 12000, "2g.20gb x3, hardware"},
		{"exactly its memory", a100, 9728, "1g.10gb x7, hardware"},
		{"half a card", a100, 24000, "3g.40gb x2, hardware"},
		{"a whole card", a100, 0, "7g.80gb x1, hardware"},
		{"more than any profile has", a100, 81920, "none, hardware"},
		{"the profiles in the register, not those of the chart", cutNode("NVIDIA A100-SXM4-80GB", registeredProfiles, "GPU-a"), 24000, "7g.80gb x1, hardware"},
		{"a card with four slices", cutNode("NVIDIA A30", "", "GPU-a"), 6000, "2g.12gb x2, hardware"},
		{"a product without a table", cutNode("NVIDIA A10", "", "GPU-a"), 6000, "none, hardware"},
		{"Volcano, in MiB", ofVolcano, 12000, "2g.20gb x3, hardware"},
	} {
		t.Run(test.name, func(t *testing.T) {
			read := sharing.Reader{}.Read(test.node)
			got := "none"
			if profile, holds := read.Holding(test.mib); holds {
				got = fmt.Sprintf("%s x%d", profile.Name, 100/profile.Cores)
			}
			if got += ", " + string(read.Isolation); got != test.want {
				t.Errorf("got %s, want %s; %v", got, test.want, read.Problems)
			}
		})
	}
}

func TestAnImpossibleProfileMakesARegisterUnreadable(t *testing.T) {
	for name, test := range map[string]struct{ profile, want string }{
		"the name":   {`{"name":"large","memoryMB":1,"sliceCount":1}`, `"large"`},
		"the memory": {`{"name":"1g.10gb","memoryMB":0,"sliceCount":1}`, "memoryMB 0"},
		"the slices": {`{"name":"1g.10gb","memoryMB":9728,"sliceCount":-1}`, "sliceCount -1"},
	} {
		t.Run(name, func(t *testing.T) {
			read := sharing.Reader{}.Read(cutNode("NVIDIA A100-SXM4-80GB", `,"migProfiles":[`+test.profile+`]`, "GPU-a"))
			if len(read.Problems) != 1 || read.Problems[0].Code != sharing.RegisterUnreadable || !strings.Contains(read.Problems[0].Message, test.want) {
				t.Errorf("problems %v, want one with %s", read.Problems, test.want)
			}
		})
	}
}

func TestInstancesOfPodsAreShownOnTheirCard(t *testing.T) {
	node := cutNode("NVIDIA A100-SXM4-80GB", registeredProfiles, "GPU-a", "GPU-b")
	node.Pods = []sharing.Pod{pod(quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 15000), "hami.io/vgpu-devices-allocated", "GPU-a,NVIDIA,19968,29:;",
		"hami.io/vgpu-mig-allocations", `[{"gpuUUID":"GPU-a","profile":"2g.20gb","placement":{"start":2,"size":2}},{"gpuUUID":"GPU-a","profile":"7g.80gb","placement":{"start":-1,"size":8}}]`)}
	read := sharing.Reader{}.Read(node)
	var got []string
	for _, card := range read.PerCard {
		text := fmt.Sprintf("%d MiB, %d percent", *card.FreeMiB, *card.FreeCores)
		for _, instance := range card.Instances {
			text += fmt.Sprintf(", %s at %d of %d", instance.Profile, *instance.Start, *card.MemoryUnits)
		}
		got = append(got, text)
	}
	if diff := cmp.Diff([]string{"61952 MiB, 72 percent, 2g.20gb at 2 of 8", "81920 MiB, 100 percent"}, got); diff != "" {
		t.Errorf("cards (-want +got):\n%s", diff)
	}
}

// placeable reports whether instances of these profiles have a legal placement beside others.
func placeable(product gpuinfo.Product, beside []gpuinfo.Instance, profiles []string) bool {
	if len(profiles) == 0 {
		return true
	}
	last := len(profiles) - 1
	profile, _ := product.Profile(profiles[last])
	return slices.ContainsFunc(profile.Starts, func(start int) bool {
		layout := append(slices.Clone(beside), gpuinfo.Instance{Profile: profile.Name, Start: start})
		return product.Check(layout) == nil && placeable(product, layout, profiles[:last])
	})
}

// TestMemoryAndSlicesDecideWhatFitsOnACard compares, for every product, what sums of memory and slices allow with legal
// placements, for every set of the profiles that are cut on request.
func TestMemoryAndSlicesDecideWhatFitsOnACard(t *testing.T) {
	for _, product := range gpuinfo.Products() {
		read := sharing.Reader{}.Read(cutNode(product.Name, "", "GPU-a"))
		if name, known := gpuinfo.ProductOf(product.Name); !known || name.Name != product.Name {
			continue // the models have other names
		}
		card := int64(product.GB) * 1024
		for _, p := range read.Profiles {
			if profile, _ := product.Profile(p.Name); min(card/p.MemoryMiB, 100/p.Cores) != int64(profile.Max) {
				t.Errorf("%s: %d of %s fit, want %d", product.Name, min(card/p.MemoryMiB, 100/p.Cores), p.Name, profile.Max)
			}
		}
		var try func(from int, memory, cores int64, set []string)
		try = func(from int, memory, cores int64, set []string) {
			for i := from; i < len(read.Profiles); i++ {
				p := read.Profiles[i]
				next := append(slices.Clone(set), p.Name)
				fits := memory+p.MemoryMiB <= card && cores+p.Cores <= 100
				if legal := placeable(product, nil, next); fits != legal {
					t.Errorf("%s: sums say %t of %v, placements say %t", product.Name, fits, next, legal)
				}
				if fits {
					try(i, memory+p.MemoryMiB, cores+p.Cores, next)
				}
			}
		}
		try(0, 0, 0, nil)
	}
}

func TestAChangeOfMIGIsToldWithAndWithoutItsTarget(t *testing.T) {
	for config, want := range map[string]string{
		"": "the change of MIG is rebooting: ", " nvidia.com/mig.config=all-1g.18gb": "the change to all-1g.18gb is rebooting: ",
	} {
		read := sharing.Reader{}.Read(sharing.NodeObject{Labels: labels("nvidia.com/gpu.product=NVIDIA-H200 nvidia.com/mig.config.state=rebooting" + config)})
		if len(read.Problems) != 1 || !strings.HasPrefix(read.Problems[0].Message, want) {
			t.Errorf("problems %v, want %q", read.Problems, want)
		}
	}
}
