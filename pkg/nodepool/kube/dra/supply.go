package dra

import (
	"context"
	"fmt"
	"maps"
	"slices"

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
	// Open says that it may supply more: DeviceClasses or ResourceSlices are unknown, or devices are not bound to nodes
	// by name.
	Open bool
}

// Units are the units of one resource on a node: all that its devices make up, those without devices that repel them
// by a taint, and those that no claim takes. An allocator that prefers other devices may find fewer.
type Units struct{ All, Well, Free int64 }

// answer is what was counted on a node, by the text of the claim, with what it depends on.
type answer struct {
	slices  []*resourcev1.ResourceSlice
	taken   []string
	kinds   int64
	counted map[string]Units
}

// ask is the claim for one unit of a resource. text is equal for equal claims.
type ask struct {
	text  string
	claim resourcev1.ResourceClaimSpec
}

// features are those of kube-scheduler 1.36 that change which devices a claim can have. taintless ignores taints.
var (
	features = structured.Features{
		AdminAccess: true, DeviceTaints: true, PartitionableDevices: true, PrioritizedList: true,
	}
	taintless = structured.Features{AdminAccess: true, PartitionableDevices: true, PrioritizedList: true}
)

// most bounds the units of one resource on a node that are counted.
const most = 1 << 10

// compiledSelectors bounds the CEL selectors that are kept compiled.
const compiledSelectors = 256

// ByNode returns what is supplied on each node that has devices, and what is supplied on all others. A node whose
// slices and claims did not change keeps its answer.
func (o *Objects) ByNode() (nodes map[string]Supply, others Supply) {
	others = Supply{Open: o.classes == nil || len(o.classes) > 0 && o.slices == nil}
	byNode, shared := map[string][]*resourcev1.ResourceSlice{}, []*resourcev1.ResourceSlice{}
	for _, name := range slices.Sorted(maps.Keys(o.slices)) {
		slice := o.slices[name]
		switch {
		case slice.Spec.NodeName != nil:
			byNode[*slice.Spec.NodeName] = append(byNode[*slice.Spec.NodeName], slice)
		case len(slice.Spec.SharedCounters) > 0:
			shared = append(shared, slice)
		case slice.Spec.PerDeviceNodeSelection != nil && *slice.Spec.PerDeviceNodeSelection:
			for node := range nodesOf(slice) {
				byNode[node] = append(byNode[node], slice)
			}
			others.Open = others.Open || slices.ContainsFunc(slice.Spec.Devices,
				func(d resourcev1.Device) bool { return d.NodeName == nil })
		default:
			others.Open = true
		}
	}
	if o.compiled == nil {
		o.compiled = cel.NewCache(compiledSelectors, cel.Features{})
	}
	asks, taken, fresh := map[string]ask{}, o.taken(), map[string]answer{}
	for name, claim := range o.asks() {
		asks[name] = ask{claim.String(), claim}
	}
	nodes = make(map[string]Supply, len(byNode))
	for node, own := range byNode {
		own = withCounters(own, shared)
		now := answer{slices: own, taken: takenOf(own, taken), kinds: o.kinds, counted: map[string]Units{}}
		before := o.known[node]
		if before.kinds == now.kinds && slices.Equal(before.slices, own) && slices.Equal(before.taken, now.taken) {
			for _, asked := range asks {
				if units, known := before.counted[asked.text]; known {
					now.counted[asked.text] = units
				}
			}
		}
		fresh[node] = now
		supply := o.supplyOn(node, now, asks, taken)
		supply.Open = others.Open
		nodes[node] = supply
	}
	o.known = fresh
	return nodes, others
}

// nodesOf returns the nodes that the devices of a slice name.
func nodesOf(slice *resourcev1.ResourceSlice) sets.Set[string] {
	nodes := sets.New[string]()
	for i := range slice.Spec.Devices {
		if name := slice.Spec.Devices[i].NodeName; name != nil {
			nodes.Insert(*name)
		}
	}
	return nodes
}

// withCounters adds the slices with the counters of the pools.
func withCounters(own, shared []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	for _, slice := range shared {
		if slices.ContainsFunc(own, func(other *resourcev1.ResourceSlice) bool {
			return other.Spec.Driver == slice.Spec.Driver && other.Spec.Pool.Name == slice.Spec.Pool.Name
		}) {
			own = append(own[:len(own):len(own)], slice)
		}
	}
	return own
}

// takenOf returns which devices of the slices claims have.
func takenOf(own []*resourcev1.ResourceSlice, taken sets.Set[structured.DeviceID]) (names []string) {
	for _, slice := range own {
		for i := range slice.Spec.Devices {
			id := structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[i].Name)
			if taken.Has(id) {
				names = append(names, id.String())
			}
		}
	}
	return names
}

// supplyOn counts the units of each resource on a node. What equal claims can have is counted once.
func (o *Objects) supplyOn(
	node string, on answer, asks map[string]ask, taken sets.Set[structured.DeviceID],
) Supply {
	supply := Supply{Units: map[string]Units{}}
	for name, asked := range asks {
		units, known := on.counted[asked.text]
		if !known {
			c := counter{classes: o, compiled: o.compiled, slices: on.slices, ask: asked.claim,
				node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}}
			none := sets.New[structured.DeviceID]()
			units = Units{c.count(taintless, none), c.count(features, none), c.count(features, taken)}
			on.counted[asked.text] = units
		}
		if units.All > 0 && units.All < most {
			supply.Units[name] = units
		}
	}
	return supply
}

// counter counts how often a claim can be had on a node.
type counter struct {
	classes  structured.DeviceClassLister
	compiled *cel.Cache
	slices   []*resourcev1.ResourceSlice
	node     *corev1.Node
	ask      resourcev1.ResourceClaimSpec
}

// count allocates the claim until the allocator finds no devices. A claim that takes no device is not bounded. One that
// the allocator refuses, because of its selectors for example, is had never.
func (c counter) count(with structured.Features, taken sets.Set[structured.DeviceID]) (n int64) {
	taken = taken.Clone()
	claim := &resourcev1.ResourceClaim{Spec: c.ask}
	claim.Name, claim.Namespace, claim.UID = "ask", "ask", "ask"
	for ; n < most; n++ {
		allocator, err := structured.NewAllocator(context.Background(), with,
			structured.AllocatedState{AllocatedDevices: taken}, c.classes, c.slices, c.compiled)
		if err != nil {
			return n
		}
		results, err := allocator.Allocate(context.Background(), c.node, []*resourcev1.ResourceClaim{claim})
		if err != nil || len(results) == 0 {
			return n
		}
		before := taken.Len()
		for _, result := range results[0].Devices.Results {
			if result.AdminAccess == nil || !*result.AdminAccess {
				taken.Insert(structured.MakeDeviceID(result.Driver, result.Pool, result.Device))
			}
		}
		if taken.Len() == before {
			return most
		}
	}
	return n
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
