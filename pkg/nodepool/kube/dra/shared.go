package dra

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
)

// reach is what one node reaches: the pools with all their slices, and the devices of complete pools. open is why it
// may reach more. shares are what its resources have in common.
type reach struct {
	pools   map[pool][]*resourcev1.ResourceSlice
	devices []reached
	open    string
	shares  []share
}

// reach returns what each node reaches that reaches something, and the wishes that match devices which several nodes
// reach: these are not counted. A pool is complete if all slices of its newest generation are there: meanwhile its
// driver publishes them, and the scheduler allocates nothing of it.
func (o *Objects) reach() (nodes map[string]*reach, several uint64) {
	byPool := map[pool][]*resourcev1.ResourceSlice{}
	for _, name := range slices.Sorted(maps.Keys(o.slices)) {
		from := poolOf(o.slices[name])
		byPool[from] = append(byPool[from], o.slices[name])
	}
	asked, bits := o.pods(), map[*resourcev1.Device]uint64{}
	split := map[*resourcev1.ResourceSlice]slicePair{}
	counters := map[pool][]resourcev1.CounterSet{}
	known := o.bits
	if text := asked.text(o.kinds); text != o.bitsOf {
		known, o.bitsOf = nil, text
	}
	nodes = map[string]*reach{}
	at := func(node string) *reach {
		if nodes[node] == nil {
			nodes[node] = &reach{pools: map[pool][]*resourcev1.ResourceSlice{}}
		}
		return nodes[node]
	}
	for _, from := range slices.SortedFunc(maps.Keys(byPool), pool.compare) {
		newest, complete := newestOf(byPool[from])
		for _, slice := range newest {
			counters[from] = append(counters[from], slice.Spec.SharedCounters...)
		}
		byPool[from] = o.splitSlices(byPool[from], newest, split)
		for _, slice := range byPool[from] {
			if on := value(slice.Spec.NodeName); on != "" {
				at(on).pools[from] = byPool[from]
			}
			if !complete || slice.Spec.Pool.Generation != newest[0].Spec.Pool.Generation {
				continue
			}
			for i := range slice.Spec.Devices {
				device := &slice.Spec.Devices[i]
				matched, before := known[device]
				if !before {
					matched = o.matches(from.driver, device, asked.wishes)
				}
				bits[device] = matched
				on := value(slice.Spec.NodeName)
				if value(slice.Spec.PerDeviceNodeSelection) {
					on = value(device.NodeName)
				}
				if on == "" {
					several |= matched
					continue
				}
				r := at(on)
				r.pools[from] = byPool[from]
				r.devices = append(r.devices,
					reached{structured.MakeDeviceID(from.driver, from.name, device.Name), device, matched})
			}
		}
		for _, r := range nodes {
			if !complete && r.pools[from] != nil {
				r.open = fmt.Sprintf("pool %s of driver %s has %d of %d ResourceSlices of generation %d", from.name,
					from.driver, len(newest), newest[0].Spec.Pool.ResourceSliceCount, newest[0].Spec.Pool.Generation)
			}
		}
	}
	o.bits, o.split = bits, split
	for _, r := range nodes {
		r.shares = asked.sharesOf(r.devices, r.countersIn(counters))
	}
	return nodes, several
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

// text is equal while the same devices match the wishes.
func (all *asked) text(kinds int64) string {
	keys := make([]string, len(all.wishes))
	for i := range all.wishes {
		keys[i] = all.wishes[i].key
	}
	return fmt.Sprint(kinds, "\n", strings.Join(keys, "\n"))
}

// Pods get the same devices by names of classes and by claims of several forms. Each form has its own Units, which hold
// as long as nobody asks in another form. What forms have in common bounds them together:
//
//	devices      of the forms whose devices are all in a set, no more units fit than the set has devices. By Hall's
//	             theorem, the unions of overlapping sets suffice for claims of one device.
//	counters     a part of a card takes at least the least that a device of its form takes of a counter of its pool.
//
// For claims of several devices, and for counters, this is necessary and not sufficient: fewer units may fit.

// wish is one of the alternatives of a request: the devices that match, and how many of them it takes.
type wish struct {
	key         string // equal for wishes with the same devices
	class       string
	selectors   []resourcev1.DeviceSelector
	tolerations []resourcev1.DeviceToleration
	count       int64
	all, admin  bool
}

// wishesOf returns the requests of a claim, each as its alternatives.
func wishesOf(claim resourcev1.ResourceClaimSpec) (requests [][]wish) {
	with := func(w wish, mode resourcev1.DeviceAllocationMode) wish {
		w.all, w.key = mode == resourcev1.DeviceAllocationModeAll, w.class
		for _, s := range w.selectors {
			w.key += "\n" + s.CEL.Expression
		}
		for i := range w.tolerations {
			w.key += "\n" + w.tolerations[i].String()
		}
		return w
	}
	for _, r := range claim.Devices.Requests {
		var wishes []wish
		if e := r.Exactly; e != nil {
			wishes = append(wishes, with(wish{class: e.DeviceClassName, selectors: e.Selectors,
				tolerations: e.Tolerations, count: e.Count, admin: value(e.AdminAccess)}, e.AllocationMode))
		}
		for _, e := range r.FirstAvailable {
			wishes = append(wishes, with(wish{class: e.DeviceClassName, selectors: e.Selectors,
				tolerations: e.Tolerations, count: e.Count}, e.AllocationMode))
		}
		requests = append(requests, wishes)
	}
	return requests
}

// mostWishes bounds the wishes that are compared, and mostSets the sets of devices of a node.
const (
	mostWishes = 64
	mostSets   = 16
	// mostAmount bounds what devices may have of a counter, as snapshots do.
	mostAmount = 1 << 40
)

// reached is a device that a node reaches. wishes has a bit for each wish that it matches.
type reached struct {
	id     structured.DeviceID
	device *resourcev1.Device
	wishes uint64
}

// share is devices of which several resources are made, and how many of them each device is.
type share struct {
	landing.Devices
	amounts map[structured.DeviceID]int64
}

// free returns what claims leave of the devices.
func (s *share) free(held map[pool][]resourcev1.DeviceRequestAllocationResult) int64 {
	free, pools := s.Free, map[pool]bool{}
	for id := range s.amounts {
		pools[pool{id.Driver.String(), id.Pool.String()}] = true
	}
	for from := range pools {
		for _, r := range held[from] {
			free -= s.amounts[structured.MakeDeviceID(r.Driver, r.Pool, r.Device)]
		}
	}
	return max(free, 0)
}

// matches returns the bits of the wishes that a device matches. A device that claims share by its capacity is not
// counted, and neither is one with a taint that is not tolerated.
func (o *Objects) matches(driver string, device *resourcev1.Device, wishes []wish) (bits uint64) {
	if value(device.AllowMultipleAllocations) {
		return 0
	}
	for i := range wishes {
		w := &wishes[i]
		class, err := o.Get(w.class)
		if err != nil || !o.selected(driver, device, class.Spec.Selectors) || !o.selected(driver, device, w.selectors) {
			continue
		}
		repels := func(taint resourcev1.DeviceTaint) bool {
			return (taint.Effect == resourcev1.DeviceTaintEffectNoSchedule ||
				taint.Effect == resourcev1.DeviceTaintEffectNoExecute) &&
				!slices.ContainsFunc(w.tolerations, func(t resourcev1.DeviceToleration) bool {
					return resourceclaim.ToleratesTaint(t, taint)
				})
		}
		if !slices.ContainsFunc(device.Taints, repels) {
			bits |= 1 << i
		}
	}
	return bits
}

func (o *Objects) selected(
	driver string, device *resourcev1.Device, selectors []resourcev1.DeviceSelector,
) bool {
	return !slices.ContainsFunc(selectors, func(s resourcev1.DeviceSelector) bool {
		if s.CEL == nil {
			return true
		}
		compiled := o.compiled.GetOrCompile(s.CEL.Expression)
		if compiled.Error != nil {
			return true
		}
		matches, _, err := compiled.DeviceMatches(context.Background(), cel.Device{Driver: driver,
			AllowMultipleAllocations: device.AllowMultipleAllocations, Attributes: device.Attributes,
			Capacity: device.Capacity})
		return err != nil || !matches
	})
}

// sharesOf returns what the resources have in common that these devices make up.
func (all *asked) sharesOf(devices []reached, counters map[pool][]resourcev1.CounterSet) (list []share) {
	sets := make([][]bool, len(all.wishes))
	for i := range all.wishes {
		sets[i] = make([]bool, len(devices))
		for d := range devices {
			sets[i][d] = devices[d].wishes>>i&1 == 1
		}
	}
	add := func(s share) {
		if len(s.Takes) > 1 && s.Free <= mostAmount {
			list = append(list, s)
		}
	}
	for _, set := range unions(sets) {
		s := share{landing.Devices{Takes: map[string]int64{}}, map[structured.DeviceID]int64{}}
		for d := range devices {
			if set[d] {
				s.Free++
				s.amounts[devices[d].id] = 1
			}
		}
		all.takes(s.Takes, sets, func(w int) int64 {
			if !within(sets[w], set) {
				return 0
			}
			return 1
		})
		add(s)
	}
	for _, from := range slices.SortedFunc(maps.Keys(counters), pool.compare) {
		for _, name := range countersOf(counters[from]) {
			s := share{landing.Devices{Takes: map[string]int64{}}, map[structured.DeviceID]int64{}}
			for _, set := range counters[from] {
				s.Free += name.of(set.Counters, true)
			}
			used := make([]int64, len(devices))
			for d := range devices {
				if devices[d].id.Driver.String() == from.driver && devices[d].id.Pool.String() == from.name {
					for _, consumed := range devices[d].device.ConsumesCounters {
						used[d] += name.of(consumed.Counters, false)
					}
				}
				s.amounts[devices[d].id] = used[d]
			}
			all.takes(s.Takes, sets, func(w int) (n int64) {
				n = -1
				for d := range devices {
					if sets[w][d] && (n < 0 || used[d] < n) {
						n = used[d]
					}
				}
				return max(n, 0)
			})
			add(s)
		}
	}
	return list
}

// takes adds for each resource how much one unit takes at least, if each device of a wish takes that of it.
func (all *asked) takes(to map[string]int64, sets [][]bool, ofWish func(w int) int64) {
	for name, ask := range all.asks {
		sum := int64(0)
		for _, request := range ask.requests {
			least := int64(-1)
			for _, w := range request {
				at, known := all.wishAt[w.key]
				if !known {
					least = 0
					break
				}
				have := size(sets[at])
				n := w.count
				if w.all {
					n = have
				}
				switch {
				case w.admin:
					least = 0
				case have > 0 && (least < 0 || n*ofWish(at) < least):
					least = n * ofWish(at)
				}
			}
			sum += max(least, 0)
		}
		if sum > 0 {
			to[name] = sum
		}
	}
}

func size(set []bool) (n int64) {
	for _, in := range set {
		if in {
			n++
		}
	}
	return n
}

// within reports whether a set is not empty and part of another one.
func within(set, other []bool) bool {
	some := false
	for d, in := range set {
		if in && !other[d] {
			return false
		}
		some = some || in
	}
	return some
}

// unions returns the different sets, and the unions of sets that overlap, as far as there are not too many.
func unions(sets [][]bool) (all [][]bool) {
	known := map[string]bool{}
	add := func(set []bool) {
		if key := fmt.Sprint(set); size(set) > 0 && !known[key] && len(all) < mostSets {
			known[key] = true
			all = append(all, set)
		}
	}
	for _, set := range sets {
		add(set)
	}
	for i := 0; i < len(all); i++ {
		for k := range i {
			overlap, union := false, slices.Clone(all[i])
			for d := range union {
				overlap = overlap || all[i][d] && all[k][d]
				union[d] = union[d] || all[k][d]
			}
			if overlap {
				add(union)
			}
		}
	}
	return all
}

// poolCounter is a counter of partitionable devices, in units of scale; slots are all counters of which each card has
// one.
type poolCounter struct {
	name  string
	scale int64
	slots map[string]bool
}

// of adds up the amounts of the counter, each rounded down or up.
func (c poolCounter) of(counters map[string]resourcev1.Counter, up bool) (n int64) {
	for name, amount := range counters {
		if name == c.name || c.slots[name] {
			more := amount.Value.Value()
			if up {
				more += c.scale - 1
			}
			n += more / c.scale
		}
	}
	return n
}

// countersOf returns the counters of a pool. Amounts of memory are in MiB.
func countersOf(sets []resourcev1.CounterSet) (all []poolCounter) {
	most := map[string]int64{}
	for _, set := range sets {
		for name, amount := range set.Counters {
			most[name] = max(most[name], amount.Value.Value())
		}
	}
	slots := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(most)) {
		switch {
		case most[name] == 1:
			slots[name] = true
		case most[name] > 1<<30:
			all = append(all, poolCounter{name: name, scale: 1 << 20})
		default:
			all = append(all, poolCounter{name: name, scale: 1})
		}
	}
	if len(slots) > 0 {
		all = append(all, poolCounter{name: "slots", scale: 1, slots: slots})
	}
	return all
}
