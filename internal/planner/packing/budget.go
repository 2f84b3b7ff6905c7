package packing

// budgets are what all bins together may take: pods that are launched, and accelerators on them. The second keeps
// work that needs none from being what accelerators are launched for.
type budgets [2]int64

const (
	podBudget = iota
	acceleratorBudget
)

// takes is how much one use of a bin takes of a budget.
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

// affordable is how often a bin may still be used.
func (c *covering) affordable(b int) int64 {
	n := c.limit[b]
	for budget, left := range c.budget {
		if each := c.takes(b, budget); each > 0 {
			n = min(n, left/each)
		}
	}
	return max(n, 0)
}

// use books that a bin is used n times; less than nothing gives it back.
func (c *covering) use(b int, n int64) {
	c.limit[b] -= n
	for budget := range c.budget {
		c.budget[budget] -= n * c.takes(b, budget)
	}
}
