package landing_test

import (
	"fmt"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// TestAPodWithoutMemoryTakesWholeCardsOfAscend has a node like that of the report hami-ascend-memory: 8 cards of 32768
// MiB, each in 4 shares.
func TestAPodWithoutMemoryTakesWholeCardsOfAscend(t *testing.T) {
	const chip = "huawei.com/Ascend910B4"
	var cards []string
	for i := range 8 {
		cards = append(cards, fmt.Sprintf(`{"id":"a%d","index":%d,"count":4,"devmem":32768,"devcore":20,"type":"Ascend910B4","health":true}`, i, i))
	}
	read := sharing.Reader{}.Read(sharing.NodeObject{Allocatable: quantities(chip, 32),
		Annotations: map[string]string{"hami.io/node-register-Ascend910B4": "[" + strings.Join(cards, ",") + "]"}})
	for _, test := range []struct {
		name string
		asks []any
		used []any
		want int64
		why  string
	}{
		{"a card each", []any{chip, 1}, nil, 8, ""},
		{"two cards each", []any{chip, 2}, nil, 4, ""},
		{"more cards than there are", []any{chip, 9}, nil, 0, "has 8 cards of huawei.com/Ascend910B4 where 9 are needed"},
		{"a share each", []any{chip, 1, chip + "-memory", 8192}, nil, 32, ""},
		{"half a card each", []any{chip, 1, chip + "-memory", 16384}, nil, 16, ""},
		{"as much as HAMi's webhook writes for a whole card", []any{chip, 1, chip + "-memory", 32768}, nil, 8, ""},
		{"a card each, three used", []any{chip, 1}, []any{chip, 3, chip + "-memory", 98304}, 5, ""},
		{"a share each, one card used", []any{chip, 1, chip + "-memory", 8192}, []any{chip, 1}, 28, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := gpuNode("n", quantities(chip, 32), "")
			n.Pool, n.GPUs, n.Use = "a", &read, &landing.Use{Requests: landing.Quantities{}}
			if used := asking(quantities(test.used...)).Requests; len(used) > 0 {
				n.Use.Requests[chip] = landing.OfShares(&read, used, chip)
			}
			stock := landing.NodesOf([]landing.Node{n}, landing.Pools{Complete: true,
				Rooms: landing.Rooms([]landing.Node{n}, landing.Config{}, []landing.Ceiling{ceiling("a", 0, 1)})})
			shape := asking(quantities(test.asks...))
			if fit := stock.Where(&shape); fit.None() != (test.why != "") || !strings.Contains(fit.Why, test.why) {
				t.Errorf("fits on %d nodes because %q, want %q", fit.Nodes, fit.Why, test.why)
			}
			kinds := []landing.Kind{stock.KindOf("g", &shape)}
			places, _ := stock.Places(kinds, nil)
			if room := landing.New([]landing.Pod{kinds[0].Pod}, places).Empty().Room(0); room != test.want {
				t.Errorf("room for %d pods, want %d", room, test.want)
			}
			if empty := landing.PodsOn(&shape, &n); test.used == nil && empty != test.want {
				t.Errorf("an empty node holds %d pods, want %d", empty, test.want)
			}
		})
	}
}
