package dra

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/structured"
)

// reach is what one node reaches: the pools with all their slices, and the devices of complete pools. open is why it
// may reach more. shares are what its resources have in common.
type reach struct {
	pools   map[pool][]*resourcev1.ResourceSlice
	devices []reached
	open    string
	shares  []share
}

// reach returns what each node reaches that reaches something. A pool is complete if all slices of its newest
// generation are there: meanwhile its driver publishes them, and the scheduler allocates nothing of it.
func (o *Objects) reach() map[string]*reach {
	byPool := map[pool][]*resourcev1.ResourceSlice{}
	for _, name := range slices.Sorted(maps.Keys(o.slices)) {
		from := poolOf(o.slices[name])
		byPool[from] = append(byPool[from], o.slices[name])
	}
	nodes, asked, bits := map[string]*reach{}, o.pods(), map[*resourcev1.Device]uint64{}
	counters := map[pool][]resourcev1.CounterSet{}
	known := o.bits
	if text := asked.text(o.kinds); text != o.bitsOf {
		known, o.bitsOf = nil, text
	}
	at := func(node string) *reach {
		if nodes[node] == nil {
			nodes[node] = &reach{pools: map[pool][]*resourcev1.ResourceSlice{}}
		}
		return nodes[node]
	}
	where := o.placer()
	joint := map[string]string{} // a node that reaches a device of the same group, by node
	first := func(node string) string {
		for joint[node] != "" && joint[node] != node {
			node = joint[node]
		}
		return node
	}
	for _, from := range slices.SortedFunc(maps.Keys(byPool), pool.compare) {
		newest, complete := newestOf(byPool[from])
		for _, slice := range newest {
			counters[from] = append(counters[from], slice.Spec.SharedCounters...)
		}
		for _, slice := range byPool[from] {
			for _, node := range where(slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector) {
				at(node).pools[from] = byPool[from]
			}
			current := slice.Spec.Pool.Generation == newest[0].Spec.Pool.Generation
			for i := range slice.Spec.Devices {
				device := &slice.Spec.Devices[i]
				on := where(slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector)
				if value(slice.Spec.PerDeviceNodeSelection) {
					on = where(device.NodeName, device.AllNodes, device.NodeSelector)
				}
				d := reached{id: structured.MakeDeviceID(from.driver, from.name, device.Name), device: device}
				if current && complete {
					matched, before := known[device]
					if !before {
						matched = o.matches(from.driver, device, asked.wishes)
					}
					bits[device], d.wishes = matched, matched
				}
				for _, node := range on {
					r := at(node)
					r.pools[from] = byPool[from]
					if current && complete {
						r.devices = append(r.devices, d)
						if a, b := first(on[0]), first(node); a != b {
							joint[max(a, b)] = min(a, b)
						}
					}
				}
			}
		}
		for _, r := range nodes {
			if !complete && r.pools[from] != nil {
				r.open = fmt.Sprintf("pool %s of driver %s has %d of %d ResourceSlices of generation %d", from.name,
					from.driver, len(newest), newest[0].Spec.Pool.ResourceSliceCount, newest[0].Spec.Pool.Generation)
			}
		}
	}
	o.bits = bits
	groups := map[string][]string{}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		r := nodes[node]
		r.shares = asked.sharesOf("", r.devices, r.countersIn(counters))
		groups[first(node)] = append(groups[first(node)], node)
	}
	for name, members := range groups {
		if len(members) < 2 {
			continue
		}
		all, seen := reach{pools: map[pool][]*resourcev1.ResourceSlice{}}, map[structured.DeviceID]bool{}
		for _, node := range members {
			maps.Copy(all.pools, nodes[node].pools)
			for _, d := range nodes[node].devices {
				if !seen[d.id] {
					seen[d.id], all.devices = true, append(all.devices, d)
				}
			}
		}
		shares := asked.sharesOf("node "+name+" and others:", all.devices, all.countersIn(counters))
		for _, node := range members {
			nodes[node].shares = append(nodes[node].shares, shares...)
		}
	}
	return nodes
}

// newestOf returns the slices of the newest generation of a pool, and whether these are all.
func newestOf(pool []*resourcev1.ResourceSlice) (newest []*resourcev1.ResourceSlice, complete bool) {
	generation := int64(0)
	for _, slice := range pool {
		generation = max(generation, slice.Spec.Pool.Generation)
	}
	for _, slice := range pool {
		if slice.Spec.Pool.Generation == generation {
			newest = append(newest, slice)
		}
	}
	return newest, int64(len(newest)) == newest[0].Spec.Pool.ResourceSliceCount
}

// countersIn returns the counters of the pools that are reached.
func (r *reach) countersIn(all map[pool][]resourcev1.CounterSet) map[pool][]resourcev1.CounterSet {
	own := map[pool][]resourcev1.CounterSet{}
	for from := range r.pools {
		if len(all[from]) > 0 {
			own[from] = all[from]
		}
	}
	return own
}

// placer returns a function that says on which nodes devices are: on one, on all, or on those that a selector matches.
// The answers for selectors are remembered.
func (o *Objects) placer() func(name *string, all *bool, selector *corev1.NodeSelector) []string {
	sorted, bySelector := slices.Sorted(maps.Keys(o.nodes)), map[*corev1.NodeSelector][]string{}
	return func(name *string, all *bool, selector *corev1.NodeSelector) []string {
		switch {
		case value(name) != "":
			return []string{*name}
		case value(all):
			return sorted
		case selector == nil:
			return nil
		}
		on, known := bySelector[selector]
		if known {
			return on
		}
		if match, err := nodeaffinity.NewNodeSelector(selector); err == nil {
			for _, node := range sorted {
				if match.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: o.nodes[node]}}) {
					on = append(on, node)
				}
			}
		}
		bySelector[selector] = on
		return on
	}
}

// text is equal while the same devices match the wishes.
func (all *asked) text(kinds int64) string {
	keys := make([]string, len(all.wishes))
	for i := range all.wishes {
		keys[i] = all.wishes[i].key
	}
	return fmt.Sprint(kinds, "\n", strings.Join(keys, "\n"))
}
