package place

import (
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestAnIndexFindsWhatALookAtEachItemFinds, also after items stop waiting.
func TestAnIndexFindsWhatALookAtEachItemFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const names = 3
		amount := rapid.Int64Range(0, 8)
		items := make([]*Item, rapid.IntRange(1, 40).Draw(t, "items"))
		left := make([]int64, len(items))
		for i := range items {
			items[i] = &Item{}
			for resource := range names {
				if n := amount.Draw(t, "amount"); n > 0 {
					items[i].Need = append(items[i].Need, Term{Resource: resource, Amount: raydemand.Amount(n)})
				}
			}
			left[i] = rapid.Int64Range(0, 2).Draw(t, "left")
		}
		x := newFitIndex(items, left, names)
		for range 20 {
			free := Vector{raydemand.Amount(amount.Draw(t, "free")), raydemand.Amount(amount.Draw(t, "free")), raydemand.Amount(amount.Draw(t, "free"))}
			from, want := rapid.IntRange(0, len(items)).Draw(t, "from"), -1
			for i := from; i < len(items) && want < 0; i++ {
				if left[i] > 0 && free.Times(items[i].Need, 1) == 1 {
					want = i
				}
			}
			if got, _ := x.next(from, free); got != want {
				t.Fatalf("from %d with %v free: item %d, want %d", from, free, got, want)
			}
			gone := rapid.IntRange(0, len(items)-1).Draw(t, "gone")
			left[gone] = 0
			x.remove(gone)
		}
	})
}
