package packing

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// drawCovering draws a packing question small enough for exhaustive search.
func drawCovering(t *rapid.T) *covering {
	const resources = 2
	var items []*vector.Item
	var left []int64
	for range rapid.IntRange(1, 3).Draw(t, "items") {
		it := &vector.Item{Alternatives: 1, Rank: []int{0}}
		for r := range resources {
			if n := rapid.Int64Range(0, 4).Draw(t, "need"); n > 0 {
				it.Need = append(it.Need, vector.Term{Resource: r, Amount: raydemand.Amount(n)})
			}
		}
		if len(it.Need) == 0 {
			it.Need = []vector.Term{{Amount: 1}}
		}
		items, left = append(items, it), append(left, rapid.Int64Range(1, 3).Draw(t, "count"))
	}
	var bins []Bin
	for range rapid.IntRange(1, 3).Draw(t, "bins") {
		b := Bin{Hosts: 1, Limit: rapid.Int64Range(1, 4).Draw(t, "limit"), Cost: float64(rapid.IntRange(1, 9).Draw(t, "cost")),
			Accelerators: int64(rapid.IntRange(0, 1).Draw(t, "accelerators"))}
		for range resources {
			b.Free = append(b.Free, raydemand.Amount(rapid.Int64Range(2, 8).Draw(t, "free")))
		}
		for range items {
			b.Admits = append(b.Admits, rapid.SampledFrom([]Admission{Primary, Primary, Primary, Secondary, never}).Draw(t, "admits"))
		}
		bins = append(bins, b)
	}
	return newCovering(&Demand{Items: items, Left: left}, bins, budgets{rapid.Int64Range(1, 9).Draw(t, "pods"), rapid.Int64Range(0, 9).Draw(t, "accelerators")})
}

// checkPacking reports violations of the question's limits.
func checkPacking(t *rapid.T, c *covering, asked []int64, budget budgets, p Result) {
	served := make([]int64, len(c.items))
	times := make([]int64, len(c.bins))
	for _, f := range p.Fillings {
		b := &c.bins[f.Bin]
		free, meant := vector.Vector(nil), false
		free = append(free, b.Free...)
		for _, u := range f.Uses {
			if b.Admits[u.Item] == never || free.Times(c.items[u.Item].Need, u.Count) < u.Count {
				t.Fatalf("bin %d does not take %v", f.Bin, f.Uses)
			}
			free.Subtract(c.items[u.Item].Need, u.Count)
			served[u.Item] += u.Count * f.Count
			meant = meant || b.Admits[u.Item] == Primary
		}
		if !meant {
			t.Errorf("bin %d is meant for nothing of %v", f.Bin, f.Uses)
		}
		times[f.Bin] += f.Count
		budget[podBudget] -= f.Count
		budget[acceleratorBudget] -= f.Count * b.Accelerators
	}
	for b, n := range times {
		if n > c.bins[b].Limit {
			t.Errorf("bin %d is used %d times of %d", b, n, c.bins[b].Limit)
		}
	}
	if budget[podBudget] < 0 || budget[acceleratorBudget] < 0 {
		t.Errorf("budgets are exceeded: %v is left", budget)
	}
	var unserved int64
	for i, n := range served {
		unserved += max(0, asked[i]-n)
	}
	if unserved != p.unserved {
		t.Errorf("%d are not served, the packing says %d", unserved, p.unserved)
	}
}

// cheapest answers by exhaustive search: the most that can be served, and the lowest cost of that.
type cheapest struct {
	*covering
	unserved int64
	cost     float64
}

func (x *cheapest) from(b int, cost float64) {
	if left := vector.Sum(x.left); left < x.unserved || left == x.unserved && cost < x.cost {
		x.unserved, x.cost = left, cost
	}
	for ; b < len(x.bins); b++ {
		if x.affordable(b) > 0 {
			free := append(vector.Vector(nil), x.bins[b].Free...)
			x.fill(b, 0, free, false, cost+x.bins[b].Cost)
		}
	}
}

// fill tries every number of each item, then goes on with the same bin or a later one.
func (x *cheapest) fill(b, i int, free vector.Vector, meant bool, cost float64) {
	if i == len(x.items) {
		if meant {
			x.use(b, 1)
			x.from(b, cost)
			x.use(b, -1)
		}
		return
	}
	x.fill(b, i+1, free, meant, cost)
	if x.bins[b].Admits[i] == never {
		return
	}
	for n := int64(1); n <= x.left[i] && free.Times(x.items[i].Need, n) >= n; n++ {
		free.Subtract(x.items[i].Need, n)
		x.left[i] -= n
		x.fill(b, i+1, free, meant || x.bins[b].Admits[i] == Primary, cost)
		x.left[i] += n
		free.Subtract(x.items[i].Need, -n)
	}
}

func TestAPackingIsAllowedAndNoneIsCheaperThanTheProgramSays(t *testing.T) {
	var asked, missed int
	rapid.Check(t, func(t *rapid.T) {
		c := drawCovering(t)
		left, budget := append([]int64(nil), c.left...), c.budget
		best := cheapest{covering: c, unserved: math.MaxInt64}
		best.from(0, 0)
		p := c.best()
		checkPacking(t, c, left, budget, p)
		if p.unserved < best.unserved || p.unserved == best.unserved && p.cost < best.cost-1e-9 {
			t.Fatalf("leaves %d and costs %v, the best leaves %d and costs %v", p.unserved, p.cost, best.unserved, best.cost)
		}
		if best.unserved == 0 && p.bound > best.cost+1e-3 {
			t.Errorf("the bound is %v, a packing costs %v", p.bound, best.cost)
		}
		asked++
		if p.unserved > best.unserved || p.cost > best.cost+1e-9 && p.unserved == best.unserved {
			missed++
		}
	})
	if missed*10 > asked {
		t.Errorf("%d of %d packings are not the best there is", missed, asked)
	}
}

func TestAKnapsackSearchedToTheEndFindsTheMostValuableFilling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCovering(t)
		var k knapsack
		for i, it := range c.items {
			k.kinds = append(k.kinds, kind{item: i, need: it.Need, limit: c.left[i], value: float64(rapid.IntRange(0, 9).Draw(t, "value"))})
		}
		kinds := append([]kind(nil), k.kinds...)
		var most func(i int, free vector.Vector) float64
		most = func(i int, free vector.Vector) (best float64) {
			if i == len(kinds) {
				return 0
			}
			for n := int64(0); n <= kinds[i].limit && free.Times(kinds[i].need, n) >= n; n++ {
				rest := append(vector.Vector(nil), free...)
				rest.Subtract(kinds[i].need, n)
				best = max(best, float64(n)*kinds[i].value+most(i+1, rest))
			}
			return best
		}
		want := most(0, c.bins[0].Free)
		if got := k.solve(c.bins[0].Free, 1_000_000); math.Abs(got-want) > 1e-6 {
			t.Errorf("finds %v, the most is %v", got, want)
		}
		if k.solve(c.bins[0].Free, 3) > want+1e-6 {
			t.Error("a search cut short finds more than there is")
		}
	})
}

// TestTheWorkOnOneProgramIsBounded has as many shapes and kinds of nodes as one program may have. A step that has begun
// when the budget is used up is completed.
func TestTheWorkOnOneProgramIsBounded(t *testing.T) {
	const items, kinds, resources = 60, 120, 3
	random := rand.New(rand.NewPCG(1, 2))
	w := Demand{}
	for range items {
		it := &vector.Item{Alternatives: 1, Rank: []int{0}}
		for r := range resources {
			it.Need = append(it.Need, vector.Term{Resource: r, Amount: raydemand.Amount(1 + random.Int64N(40))})
		}
		w.Items, w.Left = append(w.Items, it), append(w.Left, 50)
	}
	bins := make([]Bin, kinds)
	for i := range bins {
		bins[i] = Bin{Hosts: 1, Limit: 10, Cost: 1 + random.Float64()*9}
		for range resources {
			bins[i].Free = append(bins[i].Free, raydemand.Amount(100+random.Int64N(400)))
		}
		for range items {
			bins[i].Admits = append(bins[i].Admits, Primary)
		}
	}
	c := newCovering(&w, bins, budgets{vector.MaxCount, vector.MaxCount})
	c.best()
	if most := 2*maxSteps + kinds*pricingNodes + items*pricingNodes; c.steps > most {
		t.Errorf("the program takes %d steps, at most %d are allowed", c.steps, most)
	}
	if c.steps < maxSteps {
		t.Fatalf("the program takes %d steps, too few for this test", c.steps)
	}
}
