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
		slice := o.slices[name]
		from := pool{slice.Spec.Driver, slice.Spec.Pool.Name}
		byPool[from] = append(byPool[from], slice)
	}
	asked, bits := o.pods(), map[*resourcev1.Device]uint64{}
	split := map[*resourcev1.ResourceSlice]slicePair{}
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
		r.shares = asked.sharesOf(r.devices)
	}
	return nodes, several
}

// newestOf returns the slices of the newest generation of a pool, and whether these are all.
func newestOf(pool []*resourcev1.ResourceSlice) (newest []*resourcev1.ResourceSlice, complete bool) {
	generation := pool[0].Spec.Pool.Generation
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
//	parts        of forms whose devices are all parts of cards, which consume counters, no more units fit than all
//	             cards give: if they give four units of one form or twelve of another, one unit takes a fourth or a
//	             twelfth of them.
//
// For claims of several devices, and for parts, this is necessary and not sufficient: fewer units may fit.

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
	for _, r := range claim.Devices.Requests {
		var wishes []wish
		for _, e := range alternativesOf(r) {
			w := wish{key: e.DeviceClassName, class: e.DeviceClassName, selectors: e.Selectors,
				tolerations: e.Tolerations, count: e.Count,
				all:   e.AllocationMode == resourcev1.DeviceAllocationModeAll,
				admin: r.Exactly != nil && value(r.Exactly.AdminAccess)}
			for _, s := range w.selectors {
				w.key += "\n" + s.CEL.Expression
			}
			for i := range w.tolerations {
				w.key += "\n" + w.tolerations[i].String()
			}
			wishes = append(wishes, w)
		}
		requests = append(requests, wishes)
	}
	return requests
}

// mostWishes bounds the wishes that are compared, and mostSets the sets of devices of a node.
const (
	mostWishes = 64
	mostSets   = 16
	// ofLargest is how many equal pieces the largest part of a card has: 1 to 10 divide it.
	ofLargest = 2520
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
func (all *asked) sharesOf(devices []reached) (list []share) {
	sets := make([][]bool, len(all.wishes))
	for i := range all.wishes {
		sets[i] = make([]bool, len(devices))
		for d := range devices {
			sets[i][d] = devices[d].wishes>>i&1 == 1
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
		if all.takes(s.Takes, sets, set); len(s.Takes) > 1 {
			list = append(list, s)
		}
	}
	return list
}

// parts returns what resources take of the cards of which they are parts, by the units that there are of each alone. A
// part that a claim has is as much as a claim for it takes at least.
func (all *asked) parts(devices []reached, units map[string]Units) share {
	s := share{landing.Devices{Takes: map[string]int64{}}, map[structured.DeviceID]int64{}}
	parts, fewest := map[string]uint64{}, int64(unbounded)
	for name, ask := range all.asks {
		if wishes, only := all.onlyParts(ask, devices); only && units[name].All > 0 {
			parts[name], fewest = wishes, min(fewest, units[name].All)
		}
	}
	s.Free = fewest * ofLargest
	for name, wishes := range parts {
		s.Takes[name] = (s.Free + units[name].All - 1) / units[name].All
		for _, d := range devices {
			if before, known := s.amounts[d.id]; d.wishes&wishes != 0 && (!known || s.Takes[name] < before) {
				s.amounts[d.id] = s.Takes[name]
			}
		}
	}
	return s
}

// onlyParts returns the wishes of a claim, and reports whether all devices that it can have consume counters of cards.
func (all *asked) onlyParts(ask *ask, devices []reached) (wishes uint64, only bool) {
	for _, w := range slices.Concat(ask.requests...) {
		at, known := all.wishAt[w.key]
		if !known || w.admin {
			return 0, false
		}
		wishes |= 1 << at
	}
	for _, d := range devices {
		if d.wishes&wishes != 0 {
			if only = len(d.device.ConsumesCounters) > 0; !only {
				return 0, false
			}
		}
	}
	return wishes, only
}

// takes adds for each resource how many devices of a set one unit takes at least.
func (all *asked) takes(to map[string]int64, sets [][]bool, set []bool) {
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
				if w.admin || !within(sets[at], set) {
					n = 0
				}
				if w.admin || have > 0 && (least < 0 || n < least) {
					least = n
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
