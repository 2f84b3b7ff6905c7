package landing_test

import (
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// registered is an entry of HAMi's register (release 2.9 and later), with more of its fields.
func registered(uuid, model, mode string, count, mib int, more string) string {
	return fmt.Sprintf(`{"id":%q,"count":%d,"devmem":%d,"devcore":100,"type":%q,"mode":%q,"health":true%s}`, uuid, count, mib, model, mode, more)
}

// TestEachCardIsCutByItsOwnRules has nodes of HAMi whose cards have different modes, products or profiles. A request
// takes of a card in mode mig the smallest profile that holds it, and its memory of any other.
func TestEachCardIsCutByItsOwnRules(t *testing.T) {
	const sxm40, sxm80 = "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-80GB"
	const one10, seven80 = `{"name":"1g.10gb","memoryMB":9728,"sliceCount":1}`, `{"name":"7g.80gb","memoryMB":80384,"sliceCount":7}`
	const no94 = `{"name":"7g.94gb","memoryMB":81900,"sliceCount":7}`
	cut80, core80 := registered("GPU-a", sxm80, "mig", 7, 81920, ""), registered("GPU-b", sxm80, "hami-core", 10, 81920, "")
	cut40, alike80 := registered("GPU-c", sxm40, "mig", 7, 40960, ""), registered("GPU-d", sxm80, "hami-core", 7, 81920, "")
	newer := registered("GPU-e", "NVIDIA Z900", "mig", 7, 81920, "")
	small := registered("GPU-f", sxm80, "mig", 7, 81920, `,"migProfiles":[`+one10+`]`)
	full := registered("GPU-g", sxm80, "mig", 7, 81920, `,"migProfiles":[`+one10+`,`+seven80+`]`)
	odd := registered("GPU-h", sxm80, "mig", 7, 81920, `,"migProfiles":[`+one10+`,`+no94+`]`)
	used := sharing.Pod{Name: "p", Requests: quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 12000)}
	onA, onC := used, used
	onA.Annotations = map[string]string{"hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,12000,0:;"}
	onC.Annotations = map[string]string{"hami.io/vgpu-devices-allocated": "GPU-c,NVIDIA,12000,0:;"}
	wantsMIG := sharing.CardChoiceOf(map[string]string{"nvidia.com/vgpu-mode": "mig"})
	for _, test := range []struct {
		name   string
		cards  []string
		pods   []sharing.Pod
		asks   []any
		choice sharing.CardChoice
		// empty and room are how many pods the node holds if it is empty, and still holds.
		empty, room int64
		why         string
	}{
		{"both modes: 2g.20gb three times, and memory six times", []string{cut80, core80}, nil, []any{"nvidia.com/gpumem", 12000}, nil, 9, 9, ""},
		{"both modes with as many shares and memory", []string{cut80, alike80}, nil, []any{"nvidia.com/gpumem", 12000}, nil, 9, 9, ""},
		{"both modes, one instance used", []string{cut80, core80}, []sharing.Pod{onA}, []any{"nvidia.com/gpumem", 12000}, nil, 9, 8, ""},
		{"both modes, and only mig is wanted", []string{cut80, core80}, nil, []any{"nvidia.com/gpumem", 12000}, wantsMIG, 3, 3, ""},
		{"whole cards of both modes", []string{cut80, core80}, nil, nil, nil, 17, 2, ""},
		{"more than an instance of both modes has", []string{cut80, core80}, nil, []any{"nvidia.com/gpumem", 81000}, nil, 1, 1, ""},
		{"two products: 3g.20gb twice and 2g.20gb three times", []string{cut40, cut80}, nil, []any{"nvidia.com/gpumem", 12000}, nil, 5, 5, ""},
		{"two products in the other order", []string{cut80, cut40}, nil, []any{"nvidia.com/gpumem", 12000}, nil, 5, 5, ""},
		{"two products, half of the smaller card used", []string{cut40, cut80}, []sharing.Pod{onC}, []any{"nvidia.com/gpumem", 12000}, nil, 5, 4, ""},
		{"a pod without a record counts on each card as it is cut", []string{cut40, cut80}, []sharing.Pod{used}, []any{"nvidia.com/gpumem", 12000}, nil, 5, 3, ""},
		{"only the larger product holds it", []string{cut40, cut80}, nil, []any{"nvidia.com/gpumem", 45000}, nil, 1, 1, ""},
		{"two instances for a container", []string{cut40, cut80}, nil, []any{"nvidia.com/gpu", 2, "nvidia.com/gpumem", 12000}, nil, 2, 2, ""},
		{"alike cards of which one has no large profile", []string{small, full}, nil, []any{"nvidia.com/gpumem", 20000}, nil, 1, 1, ""},
		{"a product that no table has, beside another card", []string{newer, core80}, nil, []any{"nvidia.com/gpumem", 12000}, nil, 6, 6, ""},
		{"a product that no table has", []string{newer}, nil, []any{"nvidia.com/gpumem", 12000}, nil, 0, 0,
			"cuts cards of model NVIDIA Z900 into MIG instances, and no profile is known to hold the request"},
		{"a whole card of it", []string{newer}, nil, nil, nil, 0, 0, "no profile is known"},
		{"a part of each of both kinds of cards", []string{cut80, core80}, nil, []any{"nvidia.com/gpu", 3, "nvidia.com/gpumem", 12000}, nil, 0, 0,
			"it is unknown how it gives a container 3 parts"},
		{"only a profile that was left out may hold it", []string{odd}, nil, []any{"nvidia.com/gpumem", 20000}, nil, 0, 0, "no profile is known"},
		{"that of one of two cards", []string{small, odd}, nil, []any{"nvidia.com/gpumem", 20000}, nil, 0, 0, "no profile is known"},
	} {
		t.Run(test.name, func(t *testing.T) {
			units := quantities("nvidia.com/gpu", 0)
			for _, card := range test.cards {
				var count int64
				if _, err := fmt.Sscanf(card[strings.Index(card, `"count":`):], `"count":%d`, &count); err != nil {
					t.Fatal(err)
				}
				units["nvidia.com/gpu"] += count
			}
			pods := append([]sharing.Pod{}, test.pods...)
			read := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: units, Capacity: units, Pods: pods,
				Annotations: map[string]string{"hami.io/node-nvidia-register": "[" + strings.Join(test.cards, ",") + "]"}})
			n := gpuNode("n", units, "")
			n.Pool, n.GPUs, n.Use = "a", &read, &landing.Use{Cards: read.PerCard}
			shape := asking(quantities(append([]any{"nvidia.com/gpu", 1}, test.asks...)...))
			shape.Choice = test.choice
			stock := landing.NodesOf([]landing.Node{n}, landing.Pools{Complete: true,
				Rooms: landing.Rooms([]landing.Node{n}, landing.Config{}, []landing.Ceiling{ceiling("a", 0, 1)})})
			answer := stock.Where(&shape)
			if test.why != "" {
				if answer.State != landing.Trying || !strings.Contains(answer.Why, test.why) {
					t.Errorf("%+v because %q, want trying because %q", answer, answer.Why, test.why)
				}
				return
			}
			kinds := []landing.Kind{stock.KindOf("g", &shape)}
			places, _ := stock.Places(kinds, nil)
			room := landing.New([]landing.Pod{kinds[0].Pod}, places).Empty().Room(0)
			if empty := landing.PodsOn(&shape, &n); empty != test.empty || room != test.room || answer.State != landing.Fits {
				t.Errorf("%d pods when empty and room for %d, want %d and %d; %+v", empty, room, test.empty, test.room, answer)
			}
		})
	}
	beyond := asking(quantities("nvidia.com/gpu", 1, "nvidia.com/gpumem", 81910))
	read := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: quantities("nvidia.com/gpu", 7), Annotations: map[string]string{"hami.io/node-nvidia-register": "[" + odd + "]"}})
	n := landing.Node{Name: "n", Ready: true, Allocatable: landing.Quantities{"nvidia.com/gpu": raydemand.Whole(7)}, GPUs: &read}
	if fit := beyond.Fit([]landing.Node{n}); !strings.Contains(fit.Why, "has cards of nvidia.com/gpumem 81900 where 81910 of one card is needed") {
		t.Errorf("more than every registered profile has: %q", fit.Why)
	}
}
