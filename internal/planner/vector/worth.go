package vector

import (
	"heliostat.dev/heliostat/pkg/raydemand"
)

func (c *Catalog) Size(v Vector) float64 {
	var sum float64
	for i, amount := range c.Named(v) {
		sum += c.Worth(i, amount)
	}
	return sum
}

// AcceleratorWorth is what one accelerator is worth in CPU cores where prices are unknown: on public clouds a GPU costs
// about as much as fourteen cores. A weight and not an order: six nodes of one GPU and sixteen cores each waste more
// than one of eight GPUs and thirty-two cores.
const AcceleratorWorth = 14

// scarcity is an amount by what it is worth when no price is known.
func (c *Catalog) scarcity(resource int, amount float64) float64 {
	if raydemand.IsUnitInstance(c.Names[resource]) {
		return amount * AcceleratorWorth
	}
	return amount
}

// Holding is what a node has that is scarce, as one number.
func (c *Catalog) Holding(total Vector) (sum float64) {
	for i, amount := range c.Named(total) {
		sum += c.scarcity(i, c.Worth(i, amount))
	}
	return sum
}

// Needed is what one bundle asks for that is scarce, as one number; never nothing.
func (c *Catalog) Needed(it *Item) float64 {
	const least = 1e-3 // a bundle that asks for a label alone
	sum := least
	for _, t := range it.Need {
		sum += c.scarcity(t.Resource, c.Worth(t.Resource, t.Amount))
	}
	return sum
}
