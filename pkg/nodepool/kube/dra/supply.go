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
	// Open is what it may supply that is not in Units (landing.Node).
	Open map[string]string
}

// Units are the units of one resource on a node: all that its devices make up, those without devices that repel them
// by a taint, and those that no claim takes. An allocator that prefers other devices may find fewer.
type Units struct{ All, Well, Free int64 }

// answer is what was counted on a node, by the text of the claim, with what it depends on.
type answer struct {
	slices  []*resourcev1.ResourceSlice
	held    []resourcev1.DeviceRequestAllocationResult
	kinds   int64
	counted map[string]Units
}

// features are those of kube-scheduler 1.36 that change which devices a claim can have. taintless ignores taints.
var (
	features = structured.Features{
		AdminAccess: true, DeviceTaints: true, PartitionableDevices: true, PrioritizedList: true,
		DeviceBindingAndStatus: true, ConsumableCapacity: true,
	}
	taintless = structured.Features{
		AdminAccess: true, PartitionableDevices: true, PrioritizedList: true,
		DeviceBindingAndStatus: true, ConsumableCapacity: true,
	}
)

const (
	// most bounds the units of one resource on a node that are counted: no node runs so many pods. Of a resource with
	// more, a node has unbounded units.
	most      = 1 << 9
	unbounded = 1 << 20
	// work bounds the search for the devices of one claim on a node, in devices that it looks at. The allocator tries
	// all permutations of devices, which for a claim of 8 devices on a node with 7 are 13,700 steps.
	work = 1 << 18
)

// compiledSelectors bounds the CEL selectors that are kept compiled.
const compiledSelectors = 256

// pool identifies a pool of devices.
type pool struct{ driver, name string }

func poolOf(slice *resourcev1.ResourceSlice) pool {
	return pool{slice.Spec.Driver, slice.Spec.Pool.Name}
}

// ByNode returns what is supplied on each node that has devices, and what is supplied on all others. A node whose
// slices and claims did not change keeps its answer.
func (o *Objects) ByNode() (nodes map[string]Supply, others Supply) {
	others = Supply{Open: o.unknown()}
	byPool, byNode := map[pool][]*resourcev1.ResourceSlice{}, map[string]map[pool]bool{}
	for _, name := range slices.Sorted(maps.Keys(o.slices)) {
		slice := o.slices[name]
		from := poolOf(slice)
		byPool[from] = append(byPool[from], slice)
		on := nodesOf(slice)
		for node := range on {
			if byNode[node] == nil {
				byNode[node] = map[pool]bool{}
			}
			byNode[node][from] = true
		}
		if len(slice.Spec.SharedCounters) == 0 && on.Has("") {
			others.Open = map[string]string{"": "devices that are not bound to a node by name are not counted"}
		}
	}
	delete(byNode, "")
	if o.compiled == nil {
		o.compiled = cel.NewCache(compiledSelectors, cel.Features{})
	}
	held, fresh := o.heldByPool(), map[string]answer{}
	nodes = make(map[string]Supply, len(byNode))
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		now := answer{kinds: o.kinds, counted: map[string]Units{}}
		for _, from := range slices.SortedFunc(maps.Keys(byNode[node]), func(a, b pool) int {
			return cmp.Or(strings.Compare(a.driver, b.driver), strings.Compare(a.name, b.name))
		}) {
			now.slices = append(now.slices, byPool[from]...)
			now.held = append(now.held, held[from]...)
		}
		nodes[node], fresh[node] = Supply{o.unitsOn(node, now, o.known[node]), others.Open}, now
	}
	o.known = fresh
	for name, asked := range o.pods().asks {
		for node, supply := range nodes {
			if asked.endless {
				delete(supply.Units, name)
				nodes[node] = Supply{supply.Units, map[string]string{"": "endless"}}
			}
		}
	}
	return nodes, others
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

// nodesOf returns the nodes that a slice names, "" for those that it selects otherwise.
func nodesOf(slice *resourcev1.ResourceSlice) sets.Set[string] {
	if each := slice.Spec.PerDeviceNodeSelection; each == nil || !*each {
		return sets.New(value(slice.Spec.NodeName))
	}
	nodes := sets.New[string]()
	for i := range slice.Spec.Devices {
		nodes.Insert(value(slice.Spec.Devices[i].NodeName))
	}
	return nodes
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
func (o *Objects) unitsOn(node string, on, before answer) map[string]Units {
	all := map[string]Units{}
	asks := o.pods().asks
	same := before.kinds == on.kinds && slices.Equal(before.slices, on.slices)
	unchanged := same && reflect.DeepEqual(before.held, on.held)
	c := counter{classes: o, compiled: o.compiled, slices: on.slices,
		node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}}
	for _, name := range slices.Sorted(maps.Keys(asks)) {
		asked := asks[name]
		units, known := on.counted[asked.text]
		if !known {
			counted := false
			if units, counted = before.counted[asked.text]; !same || !counted {
				units = c.units(asked)
			}
			if !(unchanged && counted) {
				units.Free = units.Well
				if len(on.held) > 0 {
					units.Free = c.count(features, asked, on.held)
				}
			}
			on.counted[asked.text] = units
		}
		if units.All > 0 {
			all[name] = units
		}
	}
	return all
}

// counter counts how often a claim can be had on a node.
type counter struct {
	classes  structured.DeviceClassLister
	compiled *cel.Cache
	slices   []*resourcev1.ResourceSlice
	node     *corev1.Node
}

// units counts what a node has while no claim takes a device.
func (c counter) units(asked *ask) (units Units) {
	units.Well = c.count(features, asked, nil)
	if units.All = units.Well; slices.ContainsFunc(c.slices, tainted) {
		units.All = c.count(taintless, asked, nil)
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
// the allocator refuses, because of its selectors for example, is had never. One that takes too much work becomes
// endless, so that other nodes do not try it.
func (c counter) count(
	with structured.Features, asked *ask, held []resourcev1.DeviceRequestAllocationResult,
) (n int64) {
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
	claim := &resourcev1.ResourceClaim{Spec: asked.claim}
	claim.Name, claim.Namespace, claim.UID = "ask", "ask", "ask"
	for ; n < most && !asked.endless; n++ {
		allocator, err := structured.NewAllocator(ctx, with, taken, c.classes, c.slices, c.compiled)
		if err != nil {
			return n
		}
		results, err := allocator.Allocate(ctx, c.node, []*resourcev1.ResourceClaim{claim})
		asked.endless = ctx.steps < 0
		if err != nil || len(results) == 0 {
			return n
		}
		if !take(&taken, results[0].Devices.Results) {
			return unbounded
		}
	}
	return unbounded
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
