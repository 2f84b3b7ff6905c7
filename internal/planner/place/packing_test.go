package place

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// drawPacking draws bundles and bins small enough for exhaustive search.
func drawPacking(t *rapid.T) (*waiting, []bin) {
	const resources = 2
	var items []*Item
	var left []int64
	for range rapid.IntRange(1, 3).Draw(t, "items") {
		it := &Item{Alternatives: 1, Rank: []int{0}}
		for r := range resources {
			if n := rapid.Int64Range(0, 4).Draw(t, "need"); n > 0 {
				it.Need = append(it.Need, Term{Resource: r, Amount: raydemand.Amount(n)})
			}
		}
		if len(it.Need) == 0 {
			it.Need = []Term{{Amount: 1}}
		}
		items, left = append(items, it), append(left, rapid.Int64Range(1, 3).Draw(t, "count"))
	}
	var bins []bin
	for range rapid.IntRange(1, 3).Draw(t, "bins") {
		b := bin{limit: rapid.Int64Range(1, 4).Draw(t, "limit")}
		for range resources {
			b.free = append(b.free, raydemand.Amount(rapid.Int64Range(2, 8).Draw(t, "free")))
		}
		for range items {
			b.admits = append(b.admits, rapid.IntRange(0, 4).Draw(t, "admits") > 0)
		}
		bins = append(bins, b)
	}
	return &waiting{items: items, left: left}, bins
}

// checkPacking reports violations of the limits of bins, and returns how many bundles are not served.
func checkPacking(t *rapid.T, w *waiting, bins []bin, fillings []filling) (unserved int64) {
	served := make([]int64, len(w.items))
	times := make([]int64, len(bins))
	for _, f := range fillings {
		b := &bins[f.bin]
		free := append(Vector(nil), b.free...)
		for _, u := range f.uses {
			if !b.admits[u.item] || free.Times(w.items[u.item].Need, u.count) < u.count {
				t.Fatalf("bin %d does not take %v", f.bin, f.uses)
			}
			free.subtract(w.items[u.item].Need, u.count)
			served[u.item] += u.count * f.count
		}
		times[f.bin] += f.count
	}
	for b, n := range times {
		if n > bins[b].limit {
			t.Errorf("bin %d is used %d times of %d", b, n, bins[b].limit)
		}
	}
	for i, n := range served {
		unserved += max(0, w.left[i]-n)
	}
	return unserved
}

// most answers by exhaustive search how few bundles can be left.
type most struct {
	items       []*Item
	bins        []bin
	left, limit []int64
	unserved    int64
}

func (x *most) from(b int) {
	x.unserved = min(x.unserved, Sum(x.left))
	for ; b < len(x.bins); b++ {
		if x.limit[b] > 0 {
			x.fill(b, 0, append(Vector(nil), x.bins[b].free...), false)
		}
	}
}

// fill tries every number of each item, then goes on with the same bin or a later one.
func (x *most) fill(b, i int, free Vector, filled bool) {
	if i == len(x.items) {
		if filled {
			x.limit[b]--
			x.from(b)
			x.limit[b]++
		}
		return
	}
	x.fill(b, i+1, free, filled)
	if !x.bins[b].admits[i] {
		return
	}
	for n := int64(1); n <= x.left[i] && free.Times(x.items[i].Need, n) >= n; n++ {
		free.subtract(x.items[i].Need, n)
		x.left[i] -= n
		x.fill(b, i+1, free, true)
		x.left[i] += n
		free.subtract(x.items[i].Need, -n)
	}
}

func TestAPackingIsAllowedAndServesNearlyAlwaysWhatCanBeServed(t *testing.T) {
	var asked, missed int
	rapid.Check(t, func(t *rapid.T) {
		w, bins := drawPacking(t)
		best := most{w.items, bins, slices.Clone(w.left), nil, Sum(w.left)}
		for b := range bins {
			best.limit = append(best.limit, bins[b].limit)
		}
		best.from(0)
		fillings, _ := newPacker(w, bins).pack()
		unserved := checkPacking(t, w, bins, fillings)
		if unserved < best.unserved {
			t.Fatalf("leaves %d, the best leaves %d", unserved, best.unserved)
		}
		asked++
		if unserved > best.unserved {
			missed++
		}
	})
	if missed*10 > asked {
		t.Errorf("%d of %d packings do not serve the most there is", missed, asked)
	}
}

func TestAKnapsackSearchedToTheEndFindsTheMostValuableFilling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, bins := drawPacking(t)
		var k knapsack
		for i, it := range w.items {
			k.kinds = append(k.kinds, kind{item: i, need: it.Need, limit: w.left[i], value: float64(rapid.IntRange(0, 9).Draw(t, "value"))})
		}
		kinds := append([]kind(nil), k.kinds...)
		var most func(i int, free Vector) float64
		most = func(i int, free Vector) (best float64) {
			if i == len(kinds) {
				return 0
			}
			for n := int64(0); n <= kinds[i].limit && free.Times(kinds[i].need, n) >= n; n++ {
				rest := append(Vector(nil), free...)
				rest.subtract(kinds[i].need, n)
				best = max(best, float64(n)*kinds[i].value+most(i+1, rest))
			}
			return best
		}
		want := most(0, bins[0].free)
		if got := k.solve(bins[0].free, 1_000_000); math.Abs(got-want) > 1e-6 {
			t.Errorf("finds %v, the most is %v", got, want)
		}
		if k.solve(bins[0].free, 3) > want+1e-6 {
			t.Error("a search cut short finds more than there is")
		}
	})
}

// TestTheWorkOnOnePackingIsBounded has many shapes and kinds of nodes. A knapsack that has begun when the budget is used
// up is completed.
func TestTheWorkOnOnePackingIsBounded(t *testing.T) {
	const items, kinds, resources = 60, 120, 3
	random := rand.New(rand.NewPCG(1, 2))
	w := waiting{}
	for range items {
		it := &Item{Alternatives: 1, Rank: []int{0}}
		for r := range resources {
			it.Need = append(it.Need, Term{Resource: r, Amount: raydemand.Amount(1 + random.Int64N(40))})
		}
		w.items, w.left = append(w.items, it), append(w.left, 50)
	}
	bins := make([]bin, kinds)
	for i := range bins {
		bins[i] = bin{limit: 1 + int64(i%10)}
		for range resources {
			bins[i].free = append(bins[i].free, raydemand.Amount(100+random.Int64N(400)))
		}
		for range items {
			bins[i].admits = append(bins[i].admits, true)
		}
	}
	_, steps := newPacker(&w, bins).pack()
	if most := 2*maxSteps + kinds*knapsackNodes; steps > most {
		t.Errorf("it takes %d steps, at most %d are allowed", steps, most)
	}
	if steps < maxSteps {
		t.Fatalf("it takes %d steps, too few for this test", steps)
	}
}
