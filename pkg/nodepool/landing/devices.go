package landing

import (
	"maps"
	"slices"
)

// Devices are devices of a node that pods get in several ways: by several names, or by claims of several forms. Each
// way has an amount of its own in Free of a place, and all of them together take these.
type Devices struct {
	// Free is how many of them pods may still take on each node.
	Free int64 `json:"free"`
	// Takes is how many of them one unit of a resource takes at least, by resource.
	Takes map[string]int64 `json:"takes"`
}

// each returns how many of the devices a pod with these requests takes.
func (d *Devices) each(requests Quantities) (n int64) {
	for name, takes := range d.Takes {
		if want := requests[name]; want > 0 {
			n += cappedProduct(WholeUnits(want), takes)
		}
	}
	return n
}

// fitDevices returns how many of n pods the devices of an empty node hold.
func (p *PodShape) fitDevices(node *Node, n int64) int64 {
	for i := range node.Devices {
		if each := node.Devices[i].each(p.Requests); each > 0 {
			n = min(n, node.Devices[i].Free/each)
		}
	}
	return n
}

// freeDevices returns the devices of a node with what pods may still take of them.
func freeDevices(node *Node) []Devices {
	if node.Use == nil || node.Use.Devices == nil {
		return node.Devices
	}
	free := slices.Clone(node.Devices)
	for i := range free {
		free[i].Free = node.Use.Devices[i]
	}
	return free
}

// leastDevices returns the devices of which all of these nodes have some, as many as the node with the fewest has.
func leastDevices(nodes []*Node) (least []Devices) {
	if len(nodes) == 0 {
		return nil
	}
	for i := range nodes[0].Devices {
		devices := nodes[0].Devices[i]
		everywhere := true
		for _, node := range nodes[1:] {
			at := slices.IndexFunc(node.Devices, func(d Devices) bool {
				return maps.Equal(d.Takes, devices.Takes)
			})
			if everywhere = everywhere && at >= 0; everywhere {
				devices.Free = min(devices.Free, node.Devices[at].Free)
			}
		}
		if everywhere {
			least = append(least, devices)
		}
	}
	return least
}

// drawsOf returns for the devices of a place, as far as kinds take any, what each kind takes of them, and what is free.
func drawsOf(place *Place, pods []Pod, kinds int) (draws [][]int64, free []int64) {
	for i := range place.Devices {
		takes, some := make([]int64, kinds), false
		for k := range pods {
			takes[k] = place.Devices[i].each(pods[k].Requests)
			some = some || takes[k] > 0
		}
		if some {
			draws, free = append(draws, takes), append(free, max(place.Devices[i].Free, 0))
		}
	}
	return draws, free
}

// room returns how many pods of a kind fit on a node by what is left of it.
func (p *Packer) room(b *bin, k int) int64 {
	site := &p.places[b.place]
	n := p.kinds[k].room(b, site.order)
	for i, takes := range site.draws {
		if takes[k] > 0 {
			n = min(n, b.devices[i]/takes[k])
		}
	}
	return n
}
