package pools

import (
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// CloseDeleted bounds pools of which Karpenter's nodes are left and the NodePool is gone: no node is added to them.
// rooms are those of all NodePools there are.
func CloseDeleted(rooms []Room) {
	for i := range rooms {
		room := &rooms[i]
		if room.Mixed && room.Source == "" {
			nodes := room.Nodes
			room.Source, room.MaxNodes, room.MayAddNodes = FromKarpenter, &nodes, new(int64)
		}
	}
}

// WithDeletedPool adds the NodePool that the pod selects by its name, where there is none of that name: it can have no
// pods.
func WithDeletedPool(p *podfit.PodShape, pools []Pods, rooms []Room) []Pods {
	name, set := p.Selector[karpenterPool]
	if !set || slices.ContainsFunc(rooms, func(r Room) bool { return r.Pool == name }) {
		return pools
	}
	return append(pools, Pods{Pool: name, MayAddNodes: new(int64), MayAddPods: new(int64), Provisioned: true})
}
