package packing

// budgets limit what all bins together may take: launched pods, and accelerators on them. The second prevents launching
// accelerators for work that needs none.
type budgets [2]int64

const (
	podBudget = iota
	acceleratorBudget
)

// takes returns how much one use of a bin takes of a budget.
func (c *covering) takes(b, budget int) int64 {
	switch bin := &c.bins[b]; {
	case bin.Existing:
		return 0
	case budget == podBudget:
		return bin.Hosts
	default:
		return bin.Accelerators
	}
}

// affordable returns how often a bin may still be used.
func (c *covering) affordable(b int) int64 {
	n := c.limit[b]
	for budget, left := range c.budget {
		if each := c.takes(b, budget); each > 0 {
			n = min(n, left/each)
		}
	}
	return max(n, 0)
}

// use books n uses of a bin; a negative n returns them.
func (c *covering) use(b int, n int64) {
	c.limit[b] -= n
	for budget := range c.budget {
		c.budget[budget] -= n * c.takes(b, budget)
	}
}
