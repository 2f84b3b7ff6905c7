package fairshare

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheSmallestGetWhatTheyWantAndTheOthersEqualParts(t *testing.T) {
	for name, c := range map[string]struct {
		wanted map[string]int64
		budget int64
		want   map[string]int64
	}{
		"enough for all":            {map[string]int64{"a": 3, "b": 4}, 10, map[string]int64{"a": 3, "b": 4}},
		"one wants more":            {map[string]int64{"a": 3, "b": 40}, 10, map[string]int64{"a": 3, "b": 7}},
		"two want more":             {map[string]int64{"a": 2, "b": 40, "c": 50}, 10, map[string]int64{"a": 2, "b": 4, "c": 4}},
		"all want more":             {map[string]int64{"a": 20, "b": 40}, 10, map[string]int64{"a": 5, "b": 5}},
		"nothing to divide":         {map[string]int64{"a": 20}, 0, map[string]int64{"a": 0}},
		"a budget that is overrun":  {map[string]int64{"a": 20}, -5, map[string]int64{"a": 0}},
		"what leaves over is given": {map[string]int64{"a": 1, "b": 5, "c": 100}, 30, map[string]int64{"a": 1, "b": 5, "c": 24}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, MaxMin(c.wanted, c.budget)); diff != "" {
				t.Errorf("(-want +got): %s", diff)
			}
		})
	}
}

func TestAnOwnersExcessIsItsOwn(t *testing.T) {
	items := []Item{
		{"big", "mallory", 30}, {"big", "mallory", 30}, {"big", "mallory", 30}, {"big", "bob", 20},
		{"small", "ann", 10}, {"small", "ann", 10},
	}
	// The budget is 100. small wants 20 and gets 20. big gets 80, of which bob wants 20 and gets 20, and mallory gets
	// 60.
	want := []bool{true, true, false, true, true, true}
	if diff := cmp.Diff(want, Admit(items, 100)); diff != "" {
		t.Errorf("(-want +got): %s", diff)
	}
}

func TestWhatDoesNotFitIsPassedOverForWhatDoes(t *testing.T) {
	items := []Item{{"g", "o", 60}, {"g", "o", 50}, {"g", "o", 40}}
	if diff := cmp.Diff([]bool{true, false, true}, Admit(items, 100)); diff != "" {
		t.Errorf("(-want +got): %s", diff)
	}
}

// world returns random items and their owners.
func world(random *rand.Rand) (items []Item, budget int64) {
	groups, owners := 1+random.IntN(5), 1+random.IntN(5)
	for range random.IntN(60) {
		size := random.Int64N(50)
		if random.IntN(10) == 0 {
			size *= 20
		}
		items = append(items, Item{fmt.Sprint("g", random.IntN(groups)), fmt.Sprint("o", random.IntN(owners)), size})
	}
	return items, random.Int64N(2000)
}

func TestRulesOnRandomInput(t *testing.T) {
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 1))
		items, budget := world(random)
		admitted := Admit(items, budget)
		if diff := cmp.Diff(admitted, Admit(slices.Clone(items), budget)); diff != "" {
			t.Fatalf("seed %d: the second answer differs: %s", seed, diff)
		}
		wanted, groups, owners := map[owner]int64{}, map[string]int64{}, map[string]map[string]bool{}
		var sum int64
		refused := map[owner]bool{}
		for i, item := range items {
			of := owner{item.Group, item.Owner}
			wanted[of] += item.Size
			groups[item.Group] += item.Size
			if owners[item.Group] == nil {
				owners[item.Group] = map[string]bool{}
			}
			owners[item.Group][item.Owner] = true
			if admitted[i] {
				sum += item.Size
			} else {
				refused[of] = true
			}
		}
		if sum > budget {
			t.Fatalf("seed %d: %d admitted, the budget is %d", seed, sum, budget)
		}
		for of := range refused {
			// The minimum for an owner is an equal share of its group's equal share, whatever other owners want.
			if least := budget / int64(len(groups)) / int64(len(owners[of.group])); wanted[of] <= least {
				t.Fatalf("seed %d: %v wants %d, may use at least %d, and is refused", seed, of, wanted[of], least)
			}
		}
		checkOthersExcess(t, seed, items, budget, admitted)
	}
}

// checkOthersExcess increases the demand of the largest owner, and expects that owners within their shares lose
// nothing.
func checkOthersExcess(t *testing.T, seed uint64, items []Item, budget int64, before []bool) {
	t.Helper()
	shares := shares(items, budget)
	wanted := map[owner]int64{}
	for _, item := range items {
		wanted[owner{item.Group, item.Owner}] += item.Size
	}
	more := slices.Clone(items)
	for range 20 {
		more = append(more, Item{"hostile", "mallory", 100})
	}
	after := Admit(more, budget)
	groups := map[string]bool{"hostile": true}
	owners := map[string]map[string]bool{}
	for of := range wanted {
		groups[of.group] = true
		if owners[of.group] == nil {
			owners[of.group] = map[string]bool{}
		}
		owners[of.group][of.name] = true
	}
	for i, item := range items {
		of := owner{item.Group, item.Owner}
		equal := budget / int64(len(groups)) / int64(len(owners[of.group]))
		if wanted[of] <= min(equal, shares[of]) && before[i] && !after[i] {
			t.Fatalf("seed %d: %v wants %d, within an equal share of %d, and lost an item to another's excess", seed, of, wanted[of], equal)
		}
	}
}
