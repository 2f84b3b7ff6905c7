package placing

import (
	"math"

	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// leastIndexed is the number of items from which an index is faster.
const leastIndexed = 64

// fitIndex finds the next item of which one bundle may fit, without a look at those that do not. It is a binary tree
// over the items in their order. Each node has, by resource, the least that any item below it requests, so a node that
// exceeds what is free skips all of them. It never skips an item that fits.
type fitIndex struct {
	names int
	first int // the tree node of the first item; node 1 is the root, and those below node n are 2n and 2n+1
	least []raydemand.Amount
}

// nothing is what an item that waits for nothing requests: more than any node has.
const nothing = raydemand.Amount(math.MaxInt64)

func newFitIndex(items []*vector.Item, left []int64, names int) *fitIndex {
	first := 1
	for first < len(items) {
		first *= 2
	}
	x := &fitIndex{names: names, first: first, least: make([]raydemand.Amount, 2*first*names)}
	for i := first * names; i < len(x.least); i++ {
		x.least[i] = nothing
	}
	for i, it := range items {
		if left[i] == 0 {
			continue
		}
		own := x.of(first + i)
		clear(own)
		for _, t := range it.Need {
			own[t.Resource] = t.Amount
		}
	}
	for n := first - 1; n > 0; n-- {
		x.join(n)
	}
	return x
}

// of returns what the items below a tree node request at least.
func (x *fitIndex) of(n int) []raydemand.Amount { return x.least[n*x.names : (n+1)*x.names] }

func (x *fitIndex) join(n int) {
	own, a, b := x.of(n), x.of(2*n), x.of(2*n+1)
	for i := range own {
		own[i] = min(a[i], b[i])
	}
}

// remove removes an item that no longer waits.
func (x *fitIndex) remove(item int) {
	n := x.first + item
	own := x.of(n)
	for i := range own {
		own[i] = nothing
	}
	for n /= 2; n > 0; n /= 2 {
		x.join(n)
	}
}

// next returns the first item from one on of which a bundle may fit, or -1, and how many tree nodes it looked at.
func (x *fitIndex) next(item int, free vector.Vector) (found int, looks int64) {
	if item >= x.first {
		return -1, 0
	}
	n := x.first + item
	for {
		looks++
		switch {
		case !x.mayFit(n, free):
			for n%2 == 1 {
				n /= 2
			}
			if n == 0 {
				return -1, looks
			}
			n++
		case n >= x.first:
			return n - x.first, looks
		default:
			n *= 2
		}
	}
}

func (x *fitIndex) mayFit(n int, free vector.Vector) bool {
	for i, amount := range x.of(n) {
		if amount > free[i] {
			return false
		}
	}
	return true
}
