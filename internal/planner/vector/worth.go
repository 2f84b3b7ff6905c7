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

// AcceleratorWorth is the value of one accelerator in CPU cores if prices are unknown: on public clouds a GPU costs
// about as much as fourteen cores. It is a weight, not an order: six nodes with one GPU and sixteen cores each waste
// more than one node with eight GPUs and thirty-two cores.
const AcceleratorWorth = 14

// scarcity returns the value of an amount if no price is known.
func (c *Catalog) scarcity(resource int, amount float64) float64 {
	if raydemand.IsUnitInstance(c.Names[resource]) {
		return amount * AcceleratorWorth
	}
	return amount
}

// Holding returns the scarce resources of a node, as one number.
func (c *Catalog) Holding(total Vector) (sum float64) {
	for i, amount := range c.Named(total) {
		sum += c.scarcity(i, c.Worth(i, amount))
	}
	return sum
}

// Needed returns the scarce resources that one bundle asks for, as one number above 0.
func (c *Catalog) Needed(it *Item) float64 {
	const least = 1e-3 // a bundle that asks only for a label
	sum := least
	for _, t := range it.Need {
		sum += c.scarcity(t.Resource, c.Worth(t.Resource, t.Amount))
	}
	return sum
}
