package landing

import (
	"maps"
	"slices"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// Rooms returns all pools that have or can get a node, by name: the pools of the nodes, of the configuration, and of
// other ceilings. A configured ceiling takes precedence over that of the pool's autoscaler.
func Rooms(nodes []Node, config Config, ceilings []Ceiling) []Room {
	rooms := map[string]*Room{}
	for i := range nodes {
		node := &nodes[i]
		if node.Declared {
			continue
		}
		room := roomNamed(rooms, node.Pool)
		room.Nodes++
		room.Mixed = room.Mixed || node.Labels[karpenterPool] != ""
		room.Used = room.Used.Add(node.Capacity)
	}
	for _, spec := range config.Pools {
		roomNamed(rooms, spec.Name)
	}
	names := slices.Sorted(maps.Keys(rooms))
	for pool, ceiling := range ceilingsOf(names, ceilings) {
		rooms[pool].bound(ceiling)
	}
	for _, ceiling := range ceilings {
		if _, known := poolNamed(ceiling.Group, names); !known {
			roomNamed(rooms, ceiling.Group).bound(ceiling)
		}
	}
	for _, spec := range config.Pools {
		if ceiling, said := spec.ceiling(); said {
			room := rooms[spec.Name]
			ceiling.Limits, ceiling.Template = room.Limits, room.Template
			room.bound(ceiling)
		}
	}
	if room := rooms[""]; room != nil && config.Complete {
		// All pools are declared, so nobody adds nodes that are in no pool.
		nodes := room.Nodes
		room.MaxNodes = &nodes
	}
	list := make([]Room, 0, len(rooms))
	for _, name := range slices.Sorted(maps.Keys(rooms)) {
		list = append(list, *rooms[name].finished())
	}
	return list
}

func roomNamed(rooms map[string]*Room, name string) *Room {
	if rooms[name] == nil {
		rooms[name] = &Room{Pool: name}
	}
	return rooms[name]
}

func (r *Room) bound(ceiling Ceiling) {
	r.Source, r.Limits, r.Template = ceiling.Source, ceiling.Limits, ceiling.Template
	r.MinNodes, r.MaxNodes = ceiling.MinNodes, ceiling.MaxNodes
	r.Mixed = r.Mixed || ceiling.Source == FromKarpenter
}

// finished keeps Used only for limited resources.
func (r *Room) finished() *Room {
	if r.MaxNodes != nil {
		more := max(*r.MaxNodes-r.Nodes, 0)
		r.MayAddNodes = &more
	}
	used := Quantities{}
	for name := range r.Limits {
		used[name] = r.Used[name]
	}
	if r.Used = used; len(used) == 0 {
		r.Used = nil
	}
	return r
}

// elsewhere reports whether the template's nodeSelector names a pool other than this one, which has no node to compare.
func (r *Room) elsewhere(p *PodShape) bool {
	if r.Source == FromKarpenter {
		value, set := p.Selector[karpenterPool]
		return set && value != r.Pool
	}
	return namesPool(r.Pool) && slices.ContainsFunc(sharing.PoolLabels, func(row sharing.PoolLabel) bool {
		value, set := p.Selector[row.Key]
		_, same := poolNamed(r.Pool, []string{value})
		return set && !same
	})
}
