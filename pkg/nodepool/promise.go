package nodepool

import (
	"heliostat.dev/heliostat/pkg/nodepool/binpack"
	"heliostat.dev/heliostat/pkg/nodepool/podfit"
	"heliostat.dev/heliostat/pkg/nodepool/pools"
)

// Promise is pods of a worker group that are on their way and on no node yet.
type Promise struct {
	RayCluster ClusterKey
	Group      string
	Pods       int64
	// Shape is shared and must not be changed.
	Shape *podfit.PodShape
	// Pod is what one of them takes of Places; Places accept it by its name.
	Pod binpack.Pod
}

// Promise sets the pods of other RayClusters that come first on the same nodes: Places then say where they may be
// scheduled. It does nothing while the nodes are unknown.
func (c *Cluster) Promise(promises []Promise) {
	if c.Stock == nil || len(promises) == 0 {
		return
	}
	kinds := make([]pools.Kind, 0, len(c.Groups)+len(promises))
	for i := range c.Groups {
		kinds = append(kinds, c.Stock.KindOf(c.Groups[i].Name, &c.Groups[i].Pod))
	}
	for _, p := range promises {
		kinds = append(kinds, c.Stock.KindOf(p.RayCluster.String()+"/"+p.Group, p.Shape))
	}
	places, pods := c.Stock.Places(kinds, c.OnNodes)
	c.Places, c.Promised = places, make([]Promise, len(promises))
	for i := range c.Groups {
		c.Groups[i].Kind = &pods[i]
	}
	for i, p := range promises {
		p.Pod = pods[len(c.Groups)+i]
		c.Promised[i] = p
	}
}
