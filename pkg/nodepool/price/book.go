// Package price says what a node costs per hour by the user's configuration, and which part of it one pod pays for: its
// share of the node's GPUs, or of its CPUs if the node has none. The package must not read files, know RayClusters, or
// decide anything: a price is a fact that others weigh.
package price

import (
	"cmp"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// DefaultCurrency is the currency of prices if the user names none.
const DefaultCurrency = "USD"

// Book holds prices per hour of a node. Its zero value has none.
type Book struct {
	// Currency is that of all prices; empty means DefaultCurrency.
	Currency string
	// Pools are prices by the name of the node's pool, InstanceTypes by its instance type. A pool's price comes first.
	Pools, InstanceTypes map[string]float64
	// Spot are prices by instance type of nodes that the cloud can reclaim.
	Spot map[string]float64
	// Names maps resources to their meaning.
	Names gpuinfo.Names
}

// Unit returns the currency of all prices in the book.
func (b *Book) Unit() string {
	if b == nil || b.Currency == "" {
		return DefaultCurrency
	}
	return b.Currency
}

// Of returns the prices of the pools file.
func Of(config landing.Config, names gpuinfo.Names) *Book {
	book := &Book{Currency: config.Currency, Pools: map[string]float64{}, InstanceTypes: config.InstancePrices,
		Spot: config.SpotPrices, Names: names}
	for _, pool := range config.Pools {
		if pool.Price != nil {
			book.Pools[pool.Name] = *pool.Price
		}
	}
	return book
}

// Node returns the price of a node per hour. known is false if the user has set none.
func (b *Book) Node(node *landing.Node) (hourly float64, known bool) {
	if b == nil {
		return 0, false
	}
	kind := cmp.Or(node.Labels["node.kubernetes.io/instance-type"], node.Labels["beta.kubernetes.io/instance-type"])
	if landing.Spot(node.Labels) {
		if hourly, known = b.Spot[kind]; known {
			return hourly, true
		}
	}
	if hourly, known = b.Pools[node.PoolName()]; known {
		return hourly, true
	}
	hourly, known = b.InstanceTypes[kind]
	return hourly, known
}

// Pod returns what a pod on a node costs per hour: its share of the node's price.
func (b *Book) Pod(node *landing.Node, pod *landing.PodShape) (hourly float64, known bool) {
	hourly, known = b.Node(node)
	if !known {
		return 0, false
	}
	share, known := Share(b.Names, node, pod)
	return hourly * share, known
}
