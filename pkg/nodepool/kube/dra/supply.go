package dra

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Supply is what Dynamic Resource Allocation supplies on one node. It is immutable.
type Supply struct {
	// Units are by the name of the resource.
	Units map[string]Units
	// Devices are those of which several resources are made, and Free is what claims leave of each.
	Devices []landing.Devices
	Free    []int64
	// Open is what it may supply that is not in Units (landing.Node).
	Open map[string]string
}

// Units are the units of one resource on a node: all that its devices make up, those without devices that repel them
// by a taint, and those that no claim takes. An allocator that prefers other devices may find fewer. More is why
// there may be more; empty if there are not.
type Units struct {
	All, Well, Free int64
	More            string
}

// answer is what was counted on a node, by the text of the claim, with what it depends on.
type answer struct {
	slices  []*resourcev1.ResourceSlice
	held    []resourcev1.DeviceRequestAllocationResult
	kinds   int64
	counted map[string]Units
}

// features are those of kube-scheduler 1.36 that change which devices a claim can have.
var features = structured.Features{AdminAccess: true, DeviceTaints: true, PartitionableDevices: true,
	PrioritizedList: true, DeviceBindingAndStatus: true, ConsumableCapacity: true}

const (
	// most bounds the units of one resource on a node that are counted: no node runs so many pods. Of a resource with
	// more, a node has unbounded units.
	most      = 1 << 9
	unbounded = 1 << 20
	// work bounds the search for the devices of one claim on a node, in devices that it looks at: the allocator tries
	// all permutations of devices. It takes a sixth of a second.
	work = 1 << 17
	// mostStopped bounds the nodes on which a search for the devices of one claim takes that much work.
	mostStopped = 2
)

// Why the units of a resource on a node are not known.
var (
	tooMuchWork = fmt.Sprintf("the search for its devices reached the bound of %d steps", work)
	failed      = "the allocator of kube-scheduler fails for its devices"
)

// compiledSelectors bounds the CEL selectors that are kept compiled.
const compiledSelectors = 256

// pool identifies a pool of devices.
type pool struct{ driver, name string }

func (p pool) compare(other pool) int {
	return cmp.Or(strings.Compare(p.driver, other.driver), strings.Compare(p.name, other.name))
}

// ByNode returns what is supplied on each node that has devices, and what is supplied on all others. A node whose
// slices and claims did not change keeps its answer.
func (o *Objects) ByNode() (nodes map[string]Supply, others Supply) {
	others = Supply{Open: o.unknown()}
	if o.compiled == nil {
		o.compiled = cel.NewCache(compiledSelectors, cel.Features{})
	}
	reach, several := o.reach()
	for name, ask := range o.pods().asks {
		if slices.ContainsFunc(slices.Concat(ask.requests...), func(w wish) bool {
			at, known := o.asked.wishAt[w.key]
			return known && several>>at&1 == 1
		}) {
			others.open(name, "devices that several nodes reach are not counted")
		}
	}
	held, fresh := o.heldByPool(), map[string]answer{}
	nodes = make(map[string]Supply, len(reach))
	for _, node := range slices.Sorted(maps.Keys(reach)) {
		r := reach[node]
		now := answer{kinds: o.kinds, counted: map[string]Units{}}
		for _, from := range slices.SortedFunc(maps.Keys(r.pools), pool.compare) {
			now.slices = append(now.slices, r.pools[from]...)
			now.held = append(now.held, held[from]...)
		}
		supply := Supply{Units: o.unitsOn(node, now, o.known[node], r), Open: maps.Clone(others.Open)}
		if r.open != "" {
			supply.open("", r.open)
		}
		for name := range o.pods().asks {
			switch units := supply.Units[name]; {
			case units.More == "":
			case units.All == 0:
				delete(supply.Units, name)
				fallthrough
			default:
				supply.open(name, units.More)
			}
		}
		if parts := o.pods().parts(r.devices, supply.Units); len(parts.Takes) > 1 {
			r.shares = append(r.shares, parts)
		}
		for _, s := range r.shares {
			supply.Devices, supply.Free = append(supply.Devices, s.Devices), append(supply.Free, s.free(held))
		}
		nodes[node], fresh[node] = supply, now
	}
	o.known = fresh
	return nodes, others
}

func (s *Supply) open(name, why string) {
	if s.Open == nil {
		s.Open = map[string]string{}
	}
	s.Open[name] = why
}

// unknown returns why any resource may be supplied on a node without devices; nil if none is.
func (o *Objects) unknown() map[string]string {
	switch {
	case o.classes == nil:
		return map[string]string{"": "DeviceClasses are not known"}
	case o.slices == nil && len(o.classes) > 0:
		return map[string]string{"": "ResourceSlices are not known"}
	}
	return nil
}

// OnNewNodes returns what may be supplied on nodes that a pool adds. Its declared shape does not say which devices
// drivers publish there.
func (o *Objects) OnNewNodes() Supply {
	if o.classes == nil {
		return Supply{Open: o.unknown()}
	}
	open := map[string]string{}
	for name, asked := range o.pods().asks {
		open[name] = "the shape of a pool does not say which devices its nodes have"
		if asked.class != "" {
			open[name] = "DeviceClass " + asked.class + " supplies it, and " + open[name]
		}
	}
	return Supply{Open: open}
}

// value returns what a pointer is to, and the zero value for nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// unitsOn counts the units of each resource on a node, unless what they depend on is as before. What equal claims can
// have is counted once.
func (o *Objects) unitsOn(node string, on, before answer, r *reach) map[string]Units {
	all := map[string]Units{}
	asked := o.pods()
	same := before.kinds == on.kinds && slices.Equal(before.slices, on.slices)
	unchanged := same && reflect.DeepEqual(before.held, on.held)
	c := counter{classes: o, compiled: o.compiled, slices: on.slices, asked: asked, devices: r.devices,
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}}
	for _, name := range slices.Sorted(maps.Keys(asked.asks)) {
		ask := asked.asks[name]
		units, known := on.counted[ask.text]
		if !known {
			units, known = before.counted[ask.text]
			if known = known && same && (units.More == "" || ask.stopped > 0); !known {
				units = c.units(ask)
			}
			if !known || !unchanged {
				units = c.free(ask, units, on.held)
			}
			on.counted[ask.text] = units
		}
		if units.All > 0 || units.More != "" {
			all[name] = units
		}
	}
	return all
}

// counter counts how often a claim can be had on a node, which reaches these devices.
type counter struct {
	classes  structured.DeviceClassLister
	compiled *cel.Cache
	slices   []*resourcev1.ResourceSlice
	node     *corev1.Node
	asked    *asked
	devices  []reached
}

// units counts what a node has while no claim takes a device.
func (c counter) units(ask *ask) (units Units) {
	units.Well, units.More = c.count(features, ask, nil)
	if units.All = units.Well; slices.ContainsFunc(c.slices, tainted) {
		taintless := features
		taintless.DeviceTaints = false
		all, more := c.count(taintless, ask, nil)
		units.All, units.More = max(all, units.Well), cmp.Or(units.More, more)
	}
	return units
}

// free returns the units with what claims leave of them. While it is not known what claims leave, that is what the
// search has found.
func (c counter) free(ask *ask, units Units, held []resourcev1.DeviceRequestAllocationResult) Units {
	units.Free = units.Well
	if len(held) > 0 && units.Well > 0 {
		free, more := c.count(features, ask, held)
		units.Free, units.More = min(free, units.Well), cmp.Or(units.More, more)
	}
	return units
}

// tainted reports whether a device of a slice has a taint.
func tainted(slice *resourcev1.ResourceSlice) bool {
	return slices.ContainsFunc(slice.Spec.Devices, func(d resourcev1.Device) bool { return len(d.Taints) > 0 })
}

// budget is a context that ends after a number of steps. The allocator asks for its error once in each step of its
// search, so equal searches end equally, which they would not with a deadline.
type budget struct {
	context.Context
	steps int
}

func (b *budget) Err() error {
	if b.steps--; b.steps < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// count allocates the claim until the allocator finds no devices. A claim that takes no device is not bounded. One that
// the allocator refuses, because of its selectors for example, is had never. If the search takes too much work, what it
// found is there, and there may be more.
func (c counter) count(
	with structured.Features, ask *ask, held []resourcev1.DeviceRequestAllocationResult,
) (n int64, more string) {
	devices := 1
	for _, slice := range c.slices {
		devices += len(slice.Spec.Devices)
	}
	ctx := &budget{Context: context.Background(), steps: max(work/devices, 4*most)}
	taken := structured.AllocatedState{
		AllocatedDevices:   sets.New[structured.DeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}
	take(&taken, held)
	claim := &resourcev1.ResourceClaim{Spec: ask.claim}
	claim.Name, claim.Namespace, claim.UID = "ask", "ask", "ask"
	for ; n < most; n++ {
		if with.DeviceTaints && !c.enough(ask, taken.AllocatedDevices) {
			return n, ""
		}
		if ask.stopped >= mostStopped {
			return n, tooMuchWork
		}
		results, fails := c.allocate(ctx, with, taken, claim)
		switch {
		case fails:
			ask.stopped++
			return n, failed
		case ctx.steps < 0:
			ask.stopped++
			return n, tooMuchWork
		case len(results) == 0:
			return n, ""
		}
		if !take(&taken, results[0].Devices.Results) {
			return unbounded, ""
		}
	}
	return unbounded, ""
}

// allocate returns the devices of a claim; none if there are none, or if the allocator refuses the claim. It reports
// whether the allocator panics, as that of v0.35.4 does for allocationMode All and devices that consume counters
// (allocator_experimental.go, validateDeviceRequest leaves out the pool that checkAvailableCounters needs).
func (c counter) allocate(
	ctx context.Context, with structured.Features, taken structured.AllocatedState, claim *resourcev1.ResourceClaim,
) (results []resourcev1.AllocationResult, fails bool) {
	defer func() { fails = recover() != nil }()
	allocator, err := structured.NewAllocator(ctx, with, taken, c.classes, c.slices, c.compiled)
	if err == nil {
		results, err = allocator.Allocate(ctx, c.node, []*resourcev1.ResourceClaim{claim})
	}
	if err != nil {
		return nil, false
	}
	return results, false
}

// enough reports whether the node has as many devices for each request as it takes: the allocator tries all
// permutations of fewer. Devices that claims share by their capacity are always enough.
func (c counter) enough(ask *ask, taken sets.Set[structured.DeviceID]) bool {
	shared := func(d reached) bool { return value(d.device.AllowMultipleAllocations) }
	if slices.ContainsFunc(c.devices, shared) {
		return true
	}
	for _, request := range ask.requests {
		if !slices.ContainsFunc(request, func(w wish) bool {
			at, known := c.asked.wishAt[w.key]
			if !known || w.admin {
				return true
			}
			have := int64(0)
			for _, d := range c.devices {
				if d.wishes>>at&1 == 1 && !taken.Has(d.id) {
					have++
				}
			}
			return have > 0 && (w.all || have >= w.count)
		}) {
			return false
		}
	}
	return true
}

// take adds what a claim has to the state, and reports whether it has something. With admin access it only monitors.
func take(state *structured.AllocatedState, results []resourcev1.DeviceRequestAllocationResult) (some bool) {
	for _, r := range results {
		id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
		switch {
		case value(r.AdminAccess):
		case r.ShareID == nil:
			state.AllocatedDevices.Insert(id)
			some = true
		default:
			state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
			some = some || len(r.ConsumedCapacity) > 0
		}
	}
	return some
}

// Get returns a DeviceClass, for the allocator.
func (o *Objects) Get(name string) (*resourcev1.DeviceClass, error) {
	if class, known := o.classes[name]; known {
		return class, nil
	}
	if o.classes == nil && name == nvidiaClass.Name {
		return nvidiaClass, nil
	}
	return nil, fmt.Errorf("DeviceClass %s is not known", name)
}

// AddTo adds to a node, and to what pods take of it, what is supplied there. A resource that the node announces is its
// device plugin's: the scheduler makes no claim for it there. Pods that request another have claims too.
func (s Supply) AddTo(node *landing.Node) {
	node.Open = s.Open
	announced := node.Allocatable
	if len(s.Units) == 0 {
		return
	}
	gpus := landing.ReadNode(sharing.Reader{}, node) // before it has more than it announces
	gpus.HealthyUnits = maps.Clone(gpus.HealthyUnits)
	node.Allocatable, node.GPUs = maps.Clone(announced), &gpus
	s.addDevices(node, announced)
	for name, units := range s.Units {
		if announced[name] > 0 {
			continue
		}
		node.Allocatable[name] = raydemand.Whole(units.All)
		if units.Well < units.All {
			if gpus.HealthyUnits == nil {
				gpus.HealthyUnits = map[string]int64{}
			}
			gpus.HealthyUnits[name] = units.Well
		}
		if node.Use != nil {
			node.Use.Requests[name] = max(node.Use.Requests[name], raydemand.Whole(units.Well-units.Free))
		}
	}
}

// addDevices adds the devices of which several resources are made. What pods request by name they have, even while
// their claims are not known.
func (s Supply) addDevices(node *landing.Node, announced landing.Quantities) {
	node.Devices = slices.Clone(s.Devices)
	var free []int64
	for i := range node.Devices {
		d, byName := &node.Devices[i], int64(0)
		d.Takes = maps.Clone(d.Takes)
		maps.DeleteFunc(d.Takes, func(name string, _ int64) bool { return announced[name] > 0 })
		for name, takes := range d.Takes {
			if node.Use != nil {
				byName += landing.WholeUnits(node.Use.Requests[name]) * takes
			}
		}
		free = append(free, max(min(s.Free[i], d.Free-byName), 0))
	}
	if node.Use != nil {
		node.Use.Devices = free
	}
}
