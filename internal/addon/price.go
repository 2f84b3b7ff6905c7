package addon

import (
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/price"
)

// Hourly returns what a worker costs per hour: the group's own price, or its share of its node's.
func Hourly(cluster *nodepool.Cluster, w *nodepool.Worker, book *price.Book) (hourly float64, known bool) {
	group, known := cluster.Group(w.Group)
	switch {
	case !known:
		return 0, false
	case group.Price != nil:
		return *group.Price, true
	}
	return HourlyShare(cluster, w.Node, &group.Pod, book)
}

// HourlyShare returns what a pod of some shape costs per hour: its share of its node.
func HourlyShare(
	cluster *nodepool.Cluster, on string, shape *landing.PodShape, book *price.Book,
) (hourly float64, known bool) {
	if cluster.Stock == nil || shape == nil {
		return 0, false
	}
	node := cluster.Stock.Node(on)
	if node == nil {
		return 0, false
	}
	return book.Pod(node, shape)
}
