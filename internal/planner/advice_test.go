package planner

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// cutPool is a snapshot of one group of 1g.5gb on cards of pool a, and wishes for 9 GiB.
func cutPool(wishes int64, cards ...nodepool.PoolCards) Snapshot {
	memory, compute := int64(4864), 1.0/7
	g := pooled("g", 1, onPool("a", 7, 1))
	g.Slice = &Slice{Kind: gpuinfo.MIG, Isolation: gpuinfo.Hardware, Profile: "1g.5gb", Product: "A100 40GB", MemoryMiB: &memory, ComputeFraction: &compute}
	g.Pools[0].Cards = cards
	s := Snapshot{Groups: []Group{g}, Demand: gpuRequests(1, wishes)}
	s.Requests[0].Slice = &raydemand.SliceWish{Memory: 9 << 30}
	return s
}

func cutCards(count int64, busy *int64, cut ...nodepool.CardCut) nodepool.PoolCards {
	return nodepool.PoolCards{Product: "A100 40GB", Count: count, Cut: cut, Busy: busy}
}

func TestAnotherCutIsAdvisedOfCardsThatAreThere(t *testing.T) {
	small := func(n int64) nodepool.CardCut { return nodepool.CardCut{Profile: "1g.5gb", Count: n} }
	tests := []struct {
		name string
		s    Snapshot
		want string
	}{
		{"it is not known what the cards are", cutPool(4), ""},
		{"idle cards only", cutPool(9, cutCards(3, ptr(int64(1)), small(21))), "cutting 2 cards of pool a, each now 7 × 1g.5gb, into 4 × 1g.10gb each would serve 8 of it, for a group that asks for them; 1 of the 3 there is in use"},
		{"all are busy", cutPool(9, cutCards(2, ptr(int64(2)), small(14))), "the 2 cards of pool a, each now 7 × 1g.5gb, are all in use: once idle, one cut into 4 × 1g.10gb would serve 4 of it"},
		{"no more cards than are needed", cutPool(4, cutCards(8, nil, small(56))), "cutting 1 card of pool a, now 7 × 1g.5gb, into 4 × 1g.10gb would serve 4 of it, for a group that asks for them; which of the 8 there are in use is not known"},
		{"several cuts", cutPool(4, cutCards(2, nil, nodepool.CardCut{Profile: "3g.20gb", Count: 1}, small(9))),
			"cutting 2 cards of pool a, whose 2 together are now 1 × 3g.20gb + 9 × 1g.5gb, into 4 × 1g.10gb each would serve 4 of it"},
		{"what the card is already", cutPool(4, cutCards(1, nil, nodepool.CardCut{Profile: "1g.10gb", Count: 4})), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			message := Compute(test.s, Policy{}).InfeasibleRequests[0].Reason.Message
			if test.want == "" && strings.Contains(message, "cut") || !strings.Contains(message, test.want) {
				t.Errorf("%s\nwant … %s", message, test.want)
			}
		})
	}
}

func TestAWishThatWasRoundedGetsNoAdvice(t *testing.T) {
	s := cutPool(1, cutCards(1, nil, nodepool.CardCut{Profile: "1g.5gb", Count: 7}))
	s.Requests[0].Slice = &raydemand.SliceWish{ComputeFraction: 0.143}
	message := Compute(s, Policy{}).InfeasibleRequests[0].Reason.Message
	if !strings.Contains(message, "has 0.1429 of a card's compute, needs 0.143") || strings.Contains(message, "cutting") {
		t.Error(message)
	}
}

func TestPoolsWithCardsAndSharesAreReadAsTheyAreWritten(t *testing.T) {
	s := cutPool(1, cutCards(2, ptr(int64(1)), nodepool.CardCut{Profile: "3g.20gb", Count: 1}, nodepool.CardCut{Profile: "1g.5gb", Count: 9}), cutCards(4, nil))
	s.Groups[0].Pools[0].Shares = []PoolShare{{Resource: "cpu", Units: 4000, Capacity: 64000}}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "g", "pools": s.Groups[0].Pools}}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadSnapshot(strings.NewReader(string(text)), "s.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Groups[0].Pools, read.Groups[0].Pools); diff != "" {
		t.Error(diff)
	}
	for from, to := range map[string]string{"A100 40GB": "A1", "3g.20gb": "9g.99gb"} {
		_, err := ReadSnapshot(strings.NewReader(strings.Replace(string(text), from, to, 1)), "s.json")
		if err == nil || !strings.Contains(err.Error(), "groups[0].pools[0].cards[0]") {
			t.Errorf("%s: %v", to, err)
		}
	}
}
