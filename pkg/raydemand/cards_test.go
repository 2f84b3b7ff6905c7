package raydemand

import "testing"

func TestAFractionIsTakenFromOneCard(t *testing.T) {
	tenths := func(n int64) Amount { return Amount(n) * One / 10 }
	for name, test := range map[string]struct {
		free Amount
		part []Amount // what is free on partly used cards
		asks []Amount // of one bundle
		want int64
	}{
		"two cards take four of 0.4, not five":         {tenths(20), nil, []Amount{tenths(4)}, 4},
		"whole cards are those without any use":        {tenths(25), []Amount{tenths(5)}, []Amount{One}, 2},
		"a part uses what is left of a card":           {tenths(25), []Amount{tenths(5)}, []Amount{tenths(5)}, 5},
		"halves of two cards are no card":              {tenths(10), []Amount{tenths(5), tenths(5)}, []Amount{One}, 0},
		"pieces of one bundle are on different cards":  {tenths(20), nil, []Amount{tenths(6), tenths(6)}, 1},
		"no amount above one that is not whole starts": {tenths(40), nil, []Amount{tenths(15)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			free, asks := test.free, Pieces{}
			cards := Cards{&free, append(test.part, make([]Amount, 4-len(test.part))...)}
			for _, amount := range test.asks {
				asks.Add(PiecesOf(amount))
			}
			if got := cards.Times(&asks, 100); got != test.want {
				t.Fatalf("fits %d times, want %d", got, test.want)
			}
			if cards.Take(&asks, test.want); cards.Times(&asks, 1) > 0 {
				t.Errorf("fits again after %d times", test.want)
			}
		})
	}
}
