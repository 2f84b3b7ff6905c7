package planner

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// TestWhatIsFreeOnCardsIsPresumed covers nodes in use, for which Ray reports only sums.
func TestWhatIsFreeOnCardsIsPresumed(t *testing.T) {
	for name, c := range map[string]struct {
		total, free, ask string
		want             int // launches for one more bundle than fits
		fits             int
	}{
		"four of 0.4 fill two cards":           {"2", "0.4", "0.4", 1, 0},
		"three of 0.4 leave room for one":      {"2", "0.8", "0.4", 1, 1},
		"one of 0.6 on each of two cards":      {"2", "0.8", "0.6", 1, 0},
		"whole cards are free as far as whole": {"8", "3", "0.4", 1, 6},
		"the rest is on one card":              {"2", "1.7", "0.4", 1, 3},
		"of two ways the one that leaves less": {"4", "1.6", "0.4", 1, 2},
		"a single card adds up":                {"1", "0.9", "0.3", 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			for extra := range 2 {
				count := c.fits + extra
				if count == 0 {
					continue
				}
				s := readText(t, fmt.Sprintf(`{"groups": [{"name": "a", "resources": {"GPU": %s}, "maxReplicas": 9}],
					"nodes": [{"pod": "p", "group": "a", "state": "RUNNING", "total": {"GPU": %s}, "available": {"GPU": %s}}],
					"pendingRequests": [{"resources": {"GPU": %s}, "count": %d}]}`, c.total, c.total, c.free, c.ask, count))
				if got := Compute(s, Policy{}).Launch["a"]; got != extra*c.want {
					t.Errorf("%d of %s launch %d, want %d", count, c.ask, got, extra*c.want)
				}
			}
		})
	}
}

// cardWorld is a cluster with what is free on each card of each node.
type cardWorld struct {
	size  int
	nodes [][]raydemand.Amount
	work  []placedPart
}

type placedPart struct {
	node  int
	cards []int
	part  raydemand.Amount
}

// place puts an amount on the first node with room, as Ray does within a node: a part on the tightest card, whole ones
// on unused cards.
func (w *cardWorld) place(amount raydemand.Amount) bool {
	for n, cards := range w.nodes {
		var chosen []int
		if amount < raydemand.One {
			best := -1
			for i, free := range cards {
				if free >= amount && (best < 0 || free < cards[best]) {
					best = i
				}
			}
			if best >= 0 {
				chosen = []int{best}
			}
		} else {
			for i, free := range cards {
				if free == raydemand.One && len(chosen) < int(amount/raydemand.One) {
					chosen = append(chosen, i)
				}
			}
			if len(chosen) < int(amount/raydemand.One) {
				chosen = nil
			}
		}
		if chosen == nil {
			continue
		}
		part := min(amount, raydemand.One)
		for _, i := range chosen {
			cards[i] -= part
		}
		w.work = append(w.work, placedPart{n, chosen, part})
		return true
	}
	return false
}

func (w *cardWorld) end(i int) {
	for _, card := range w.work[i].cards {
		w.nodes[w.work[i].node][card] += w.work[i].part
	}
	w.work = slices.Delete(w.work, i, i+1)
}

// snapshot is what Ray reports: sums.
func (w *cardWorld) snapshot(waiting map[raydemand.Amount]int64) Snapshot {
	all := raydemand.Bundle{"GPU": raydemand.Whole(int64(w.size))}
	s := Snapshot{Groups: []Group{{Name: "a", Resources: all, Max: 100, NumOfHosts: 1}}}
	for n, cards := range w.nodes {
		var free raydemand.Amount
		for _, card := range cards {
			free += card
		}
		s.Nodes = append(s.Nodes, Node{Pod: fmt.Sprintf("pod-%03d", n), Group: "a", State: Running, Total: all, Available: raydemand.Bundle{"GPU": free}})
	}
	for _, amount := range slices.Sorted(maps.Keys(waiting)) {
		if waiting[amount] > 0 {
			s.Requests = append(s.Requests, raydemand.Request{Bundle: raydemand.Bundle{"GPU": amount}, Count: waiting[amount]})
		}
	}
	return s
}

func (w *cardWorld) join() {
	cards := make([]raydemand.Amount, w.size)
	for i := range cards {
		cards[i] = raydemand.One
	}
	w.nodes = append(w.nodes, cards)
}

var partsOfCards = []raydemand.Amount{1000, 2000, 2500, 3000, 4000, 5000, 6000, 7000, 9000, 10_000, 20_000}

// leastNodes returns the fewest nodes that hold all amounts, by trying everything.
func leastNodes(size int, amounts []raydemand.Amount) int {
	for n := 1; ; n++ {
		w := cardWorld{size: size}
		for range n {
			w.join()
		}
		if w.holds(amounts) {
			return n
		}
	}
}

// holds tries every card for every part.
func (w *cardWorld) holds(amounts []raydemand.Amount) bool {
	if len(amounts) == 0 {
		return true
	}
	amount, rest := amounts[0], amounts[1:]
	for _, cards := range w.nodes {
		if amount >= raydemand.One {
			var chosen []int
			for i, free := range cards {
				if free == raydemand.One && len(chosen) < int(amount/raydemand.One) {
					chosen = append(chosen, i)
				}
			}
			if len(chosen) < int(amount/raydemand.One) {
				continue
			}
			for _, i := range chosen {
				cards[i] = 0
			}
			if w.holds(rest) {
				return true
			}
			for _, i := range chosen {
				cards[i] = raydemand.One
			}
			continue
		}
		tried := map[raydemand.Amount]bool{}
		for i, free := range cards {
			if free < amount || tried[free] {
				continue
			}
			tried[free] = true
			cards[i] -= amount
			if w.holds(rest) {
				return true
			}
			cards[i] += amount
		}
	}
	return false
}

// TestPartsOfCardsTakeNoFewerNodesThanTheyNeedAndAtMostOneMore finds the minimum by trying everything. A plan does not
// always find the packing that fills all cards completely, and Ray, which places work as it arrives, would not either.
func TestPartsOfCardsTakeNoFewerNodesThanTheyNeedAndAtMostOneMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 4).Draw(t, "cards")
		waiting := map[raydemand.Amount]int64{}
		var all []raydemand.Amount
		for _, amount := range rapid.SliceOfN(rapid.SampledFrom(partsOfCards), 1, 9).Draw(t, "amounts") {
			if int(amount/raydemand.One) <= size {
				waiting[amount]++
				all = append(all, amount)
			}
		}
		slices.SortFunc(all, func(a, b raydemand.Amount) int { return int(b - a) })
		w := cardWorld{size: size}
		plan := Compute(w.snapshot(waiting), Policy{})
		if len(all) == 0 {
			return
		}
		least, got := leastNodes(size, all), plan.Launch["a"]
		if got < least || got > least+1 || len(plan.InfeasibleRequests) > 0 {
			t.Errorf("%v on nodes of %d cards launch %d, leaving %v; trying everything finds %d", all, size, got, plan.InfeasibleRequests, least)
		}
	})
}

// TestPartsOfCardsNeverWaitForEverAndNeverLaunchWithoutEnd simulates a cluster: work arrives, is placed as Ray places
// it, and ends in any order. Work that waits for a round next to unchanged nodes is reported as refused, as the
// controller does.
func TestPartsOfCardsNeverWaitForEverAndNeverLaunchWithoutEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &cardWorld{size: rapid.IntRange(2, 8).Draw(t, "cards")}
		w.join()
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			waiting := map[raydemand.Amount]int64{}
			bundles := 0
			for _, amount := range rapid.SliceOfN(rapid.SampledFrom(partsOfCards), 0, 12).Draw(t, "comes") {
				waiting[amount]++
				bundles++
			}
			w.settle(t, waiting, bundles)
			for range rapid.IntRange(0, len(w.work)).Draw(t, "ends") {
				w.end(rapid.IntRange(0, len(w.work)-1).Draw(t, "which"))
			}
		}
	})
}

// settle plans and applies until nothing is waiting. Each launched pod must be for a waiting bundle.
func (w *cardWorld) settle(t *rapid.T, waiting map[raydemand.Amount]int64, bundles int) {
	launched, refused := 0, false
	for range 2*bundles + 2 {
		w.placeAll(waiting)
		s := w.snapshot(waiting)
		if len(s.Requests) == 0 {
			return
		}
		if refused {
			for i := range s.Nodes {
				s.Nodes[i].Refused = refusedBy(s.Nodes[i], s.Requests)
			}
		}
		n := Compute(s, Policy{}).Launch["a"]
		if refused && n == 0 {
			t.Fatalf("%v waits for ever beside %v", waiting, w.nodes)
		}
		refused = n == 0
		for range n {
			w.join()
		}
		if launched += n; launched > bundles {
			t.Fatalf("%d pods are launched for %d bundles", launched, bundles)
		}
	}
	t.Fatalf("%v still waits beside %v", waiting, w.nodes)
}

func (w *cardWorld) placeAll(waiting map[raydemand.Amount]int64) {
	for _, amount := range slices.Sorted(maps.Keys(waiting)) {
		for waiting[amount] > 0 && w.place(amount) {
			waiting[amount]--
		}
	}
}

// refusedBy returns the smallest waiting amount that the node has free in total.
func refusedBy(n Node, requests []raydemand.Request) raydemand.Bundle {
	var least raydemand.Amount
	for _, r := range requests {
		if a := r.Bundle["GPU"]; a <= n.Available["GPU"] && (least == 0 || a < least) {
			least = a
		}
	}
	if least == 0 {
		return nil
	}
	return raydemand.Bundle{"GPU": least}
}
