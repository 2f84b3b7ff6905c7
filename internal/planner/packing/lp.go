package packing

import (
	"math"

	"heliostat.dev/heliostat/internal/planner/vector"
)

// column is one way to fill one bin: a variable of the covering program that counts how often it is used.
type column struct {
	bin  int
	cost float64
	// uses are the bundles of each item in one host of the bin.
	uses []Portion
}

// simplex solves the covering program over the known columns at the least cost: every item's bundles are covered, or
// left over at a price above any filling's, and no bin is used more often than allowed.
//
// It is the revised simplex method with an explicit inverse of the basis, which suits some tens of rows and columns
// that arrive one by one. Products are rounded before they are added, so a machine with fused multiply-add finds the
// same plan as one without.
type simplex struct {
	*covering
	inverse []float64 // of the basis, row by row
	value   []float64 // of the basic variables
	basis   []int     // column number; a slack of row r is -1-r
	dual    []float64
	enter   []float64 // the entering column, in terms of the basis
	pivots  int       // how many more pivots are allowed
}

const (
	// tolerance is the least improvement of a reduced cost, as a share of the most expensive bin.
	tolerance = 1e-7
	// perturbation makes equal right-hand sides different, against cycling. It is smaller than roundingSlack.
	perturbation = 1e-6
	// stepSize is how many operations on the program take about as long as a node of a knapsack.
	stepSize = 32
	// leftOver is the price of an unserved bundle, as a multiple of the most expensive bin.
	leftOver = 1000
)

// newSimplex starts with everything left over.
func newSimplex(c *covering, pivots int) *simplex {
	n := c.rows
	s := &simplex{covering: c, pivots: pivots,
		inverse: make([]float64, n*n), value: make([]float64, n),
		basis: make([]int, n), dual: make([]float64, n), enter: make([]float64, n)}
	s.restart()
	return s
}

// restart discards the basis, because demand and limits may have changed.
func (s *simplex) restart() {
	clear(s.inverse)
	for r := range s.rows {
		s.inverse[r*s.rows+r] = 1
		s.basis[r] = -1 - r
		s.value[r] = s.bound(r) + perturbation*float64(r+1)
		s.dual[r] = s.slackPrice(r)
	}
}

// bound returns the right-hand side of a row: bundles of an item, uses of a bin, or a budget.
func (c *covering) bound(row int) float64 {
	if m := len(c.items); row < m {
		return float64(c.left[row])
	} else if row < m+len(c.limited) {
		return float64(c.limit[c.limited[row-m]])
	}
	for budget, r := range c.budgetRow {
		if r == row {
			return float64(c.budget[budget])
		}
	}
	return 0
}

// layRows creates a row for each item, and for each limit that could be reached.
func (c *covering) layRows() {
	c.rows = len(c.items)
	c.limitRow = make([]int, len(c.bins))
	for b := range c.bins {
		c.limitRow[b] = none
		if c.bins[b].Limit < c.useful(b) {
			c.limitRow[b] = c.rows
			c.limited = append(c.limited, b)
			c.rows++
		}
	}
	all := vector.Sum(c.left)
	for budget := range c.budgetRow {
		c.budgetRow[budget] = none
		var most int64
		for b := range c.bins {
			most = max(most, c.takes(b, budget))
		}
		if most > 0 && c.budget[budget]/most < all {
			c.budgetRow[budget] = c.rows
			c.rows++
		}
	}
}

// none is the row of a limit that cannot be reached.
const none = -1

// dualOf returns the price of a row, or 0 for none.
func (s *simplex) dualOf(row int) float64 {
	if row == none {
		return 0
	}
	return s.dual[row]
}

// binPrice returns what one use of a bin costs in addition to its own cost: the value of the limits that it uses.
func (s *simplex) binPrice(b int) float64 {
	price := -s.dualOf(s.limitRow[b])
	for budget, row := range s.budgetRow {
		price -= float64(float64(s.takes(b, budget)) * s.dualOf(row))
	}
	return price
}

// slackPrice returns the price of one unit of a row's slack variable: high for an unserved bundle, 0 for an unused bin.
func (c *covering) slackPrice(row int) float64 {
	if row < len(c.items) {
		return leftOver * c.highestCost
	}
	return 0
}

// improve enters columns until no known column makes the program cheaper. It reports false if the allowed pivots or the
// allowed work are used up.
func (s *simplex) improve(pool []column) bool {
	for ; s.pivots > 0 && !s.pastBudget(); s.pivots-- {
		s.steps += (s.rows*s.rows + 4*len(pool)) / stepSize
		best, worst := -1, -tolerance*s.highestCost
		for j := range pool {
			if reduced := s.reduced(&pool[j]); reduced < worst {
				best, worst = j, reduced
			}
		}
		surplus, slack := -1, -1
		for r, d := range s.dual {
			switch {
			case r < len(s.items) && d < worst:
				surplus, slack, best, worst = r, -1, -1, d
			case s.slackPrice(r)-d < worst:
				surplus, slack, best, worst = -1, r, -1, s.slackPrice(r)-d
			}
		}
		switch {
		case best >= 0:
			s.enterColumn(&pool[best])
			s.pivot(best, worst)
		case surplus >= 0:
			s.enterUnit(surplus, -1)
			s.pivot(surplusOf(surplus), worst)
		case slack >= 0:
			s.enterUnit(slack, 1)
			s.pivot(-1-slack, worst)
		default:
			return true
		}
	}
	return false
}

// surplusOf returns the number of the variable for bundles covered beyond the demand of a row.
func surplusOf(row int) int { return math.MinInt32 + row }

// reduced returns the reduced cost of a column, negative if it lowers the cost.
func (s *simplex) reduced(c *column) float64 {
	hosts := float64(s.bins[c.bin].Hosts)
	cost := c.cost + s.binPrice(c.bin)
	for _, u := range c.uses {
		cost -= float64(float64(u.Count) * hosts * s.dual[u.Item])
	}
	return cost
}

func (s *simplex) enterColumn(c *column) {
	clear(s.enter)
	hosts := float64(s.bins[c.bin].Hosts)
	for _, u := range c.uses {
		s.add(u.Item, float64(u.Count)*hosts)
	}
	if row := s.limitRow[c.bin]; row != none {
		s.add(row, 1)
	}
	for budget, row := range s.budgetRow {
		if row != none {
			s.add(row, float64(s.takes(c.bin, budget)))
		}
	}
}

func (s *simplex) enterUnit(row int, factor float64) {
	clear(s.enter)
	s.add(row, factor)
}

// add adds factor times a column of the inverse to the entering column.
func (s *simplex) add(row int, factor float64) {
	for r := range s.rows {
		s.enter[r] += float64(s.inverse[r*s.rows+row] * factor)
	}
}

// pivot exchanges the entering variable for the basic one that reaches zero first.
func (s *simplex) pivot(variable int, reduced float64) {
	const smallest = 1e-9
	leave, least := -1, math.Inf(1)
	for r, e := range s.enter {
		if e <= smallest {
			continue
		}
		if ratio := s.value[r] / e; ratio < least {
			leave, least = r, ratio
		}
	}
	if leave < 0 {
		s.pivots = 0 // every filling has a limit: only rounding errors lead here
		return
	}
	n := s.rows
	pivotRow := s.inverse[leave*n : leave*n+n]
	scale := 1 / s.enter[leave]
	for j := range pivotRow {
		s.dual[j] += float64(reduced * scale * pivotRow[j])
		pivotRow[j] *= scale
	}
	for r, e := range s.enter {
		if r == leave || e == 0 {
			continue
		}
		row := s.inverse[r*n : r*n+n]
		for j, v := range pivotRow {
			row[j] -= float64(e * v)
		}
		s.value[r] = max(0, s.value[r]-float64(e*least))
	}
	s.value[leave], s.basis[leave] = least, variable
}

// objective returns the cost of the program by its prices, without the perturbation. If no column improves it, no
// filling costs less.
func (s *simplex) objective() (sum float64) {
	for r, d := range s.dual {
		sum += float64(d * s.bound(r))
	}
	return sum
}

// leavesOver reports whether some bundle cannot be covered, even in fractions.
func (s *simplex) leavesOver() bool {
	for r, variable := range s.basis {
		if variable < 0 && variable >= -len(s.items) && s.value[r] > roundingSlack {
			return true
		}
	}
	return false
}
