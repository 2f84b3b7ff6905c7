package landing

import (
	"slices"
)

// closeDeleted bounds pools whose NodePool is deleted and whose nodes are left: no node is added to them. rooms are the
// rooms of all existing NodePools.
func closeDeleted(rooms []Room) []Room {
	rooms = slices.Clone(rooms)
	for i := range rooms {
		room := &rooms[i]
		if room.Mixed && room.Source == "" {
			nodes := room.Nodes
			room.Source, room.MaxNodes, room.MayAddNodes = FromKarpenter, &nodes, new(int64)
		}
	}
	return rooms
}

// withDeletedPool adds the NodePool that the pod selects by name if no such NodePool exists: it can have no pods.
func withDeletedPool(p *PodShape, pools []Pods, rooms []Room) []Pods {
	name, set := p.Selector[karpenterPool]
	if !set || slices.ContainsFunc(rooms, func(r Room) bool { return r.Pool == name }) {
		return pools
	}
	return append(pools, Pods{Pool: name, MayAddNodes: new(int64), MayAddPods: new(int64), Provisioned: true})
}
