package landing

import (
	"maps"
	"slices"
)

// Devices are devices of a node that pods get in several ways: by several names, or by claims of several forms. Each
// way has an amount of its own in Free of a place, and all of them together take these.
type Devices struct {
	// Among names the devices if other nodes reach the same ones; empty if they are of each node alone.
	Among string `json:"among,omitempty"`
	// Free is how many of them pods may still take: on each node, or on all nodes that reach them together.
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
				return d.Among == devices.Among && maps.Equal(d.Takes, devices.Takes)
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

// draw is what each kind of pods takes of devices of a place. at is the position of those that several nodes reach in
// Taken.among, and negative for those of each node alone.
type draw struct {
	at    int
	takes []int64
}

// drawsOf returns what the kinds take of a place's devices, as far as they take any.
func (p *Packer) drawsOf(place *Place, pods []Pod, among map[string]int) (draws []draw, free []int64) {
	for i := range place.Devices {
		devices := &place.Devices[i]
		d, some := draw{at: -1, takes: make([]int64, len(p.kinds))}, false
		for k := range pods {
			d.takes[k] = devices.each(pods[k].Requests)
			some = some || d.takes[k] > 0
		}
		if !some {
			continue
		}
		if devices.Among != "" {
			at, known := among[devices.Among]
			if !known {
				at = len(p.among)
				among[devices.Among], p.among = at, append(p.among, devices.Free)
			}
			p.among[at] = min(p.among[at], max(devices.Free, 0))
			for k := range pods {
				p.kinds[k].sharesNodes = p.kinds[k].sharesNodes || d.takes[k] > 0
			}
			d.at = at
		}
		draws, free = append(draws, d), append(free, max(devices.Free, 0))
	}
	return draws, free
}

// room returns how many pods of a kind fit on a node by what is left of it alone.
func (p *Packer) room(b *bin, k int) int64 {
	site := &p.places[b.place]
	n := p.kinds[k].room(b, site.order)
	for i, d := range site.draws {
		if d.at < 0 && d.takes[k] > 0 {
			n = min(n, b.devices[i]/d.takes[k])
		}
	}
	return n
}

// ofAmong returns how many of n pods of a kind may be placed on a node by the devices that other nodes reach too.
func (s *Taken) ofAmong(b *bin, k int, n int64) int64 {
	for _, d := range s.packer.places[b.place].draws {
		if d.at >= 0 && d.takes[k] > 0 {
			n = min(n, s.among[d.at]/d.takes[k])
		}
	}
	return n
}

// takeAmong subtracts what n pods of a kind on a node take of the devices that other nodes reach too.
func (s *Taken) takeAmong(b *bin, k int, n int64) {
	for _, d := range s.packer.places[b.place].draws {
		if d.at >= 0 {
			s.among[d.at] -= d.takes[k] * n
		}
	}
}
