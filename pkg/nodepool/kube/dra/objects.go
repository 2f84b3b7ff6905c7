// Package dra says what Dynamic Resource Allocation supplies on each node: how many units of each extended resource
// that a DeviceClass stands for, and how many pods can have a claim of a ResourceClaimTemplate. It asks the allocator
// of kube-scheduler (k8s.io/dynamic-resource-allocation), so counts, allocationMode, firstAvailable, CEL selectors,
// constraints, shared counters, taints and tolerations mean what they mean there.
//
// It must not decide where pods fit, and it reads no files and no API server.
package dra

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"

	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// Objects are the objects of resource.k8s.io. The zero value knows none. It must not be copied after its first use.
type Objects struct {
	slices map[string]*resourcev1.ResourceSlice
	// held are the devices of each ResourceClaim. Each of these is nil while its objects are unknown.
	held      map[types.NamespacedName][]resourcev1.DeviceRequestAllocationResult
	classes   map[string]*resourcev1.DeviceClass
	templates map[types.NamespacedName]*resourcev1.ResourceClaimTemplate

	// kinds counts the changes of classes. asked is what pods ask for, nil after a change of all but claims. known
	// are the answers for nodes when they were last asked for.
	kinds    int64
	asked    *asked
	known    map[string]answer
	compiled *cel.Cache
	// bits are the wishes that each device matches, while the wishes have this text.
	bits   map[*resourcev1.Device]uint64
	bitsOf string
	// split are the slices that have counters and devices, in two.
	split map[*resourcev1.ResourceSlice]slicePair
}

// know notes that the objects of a kind are known, even if there are none, and reports whether they were not.
func know[K comparable, V any](objects *map[K]V) (differs bool) {
	if differs = *objects == nil; differs {
		*objects = map[K]V{}
	}
	return differs
}

// drop forgets an object, and reports whether it was there.
func drop[K comparable, V any](objects map[K]V, key K) (differs bool) {
	_, differs = objects[key]
	delete(objects, key)
	return differs
}

// forget forgets all objects of a kind, which are unknown then, and reports whether there were any.
func forget[K comparable, V any](objects *map[K]V) (differs bool) {
	differs, *objects = len(*objects) > 0, nil
	return differs
}

// KnowSlices notes that ResourceSlices are known, even if there are none, and reports whether they were not.
func (o *Objects) KnowSlices() (differs bool) { return know(&o.slices) }

// PutSlice keeps a ResourceSlice, and reports whether it differs from what was kept.
func (o *Objects) PutSlice(slice *resourcev1.ResourceSlice) (differs bool) {
	o.KnowSlices()
	before, known := o.slices[slice.Name]
	if known && reflect.DeepEqual(before.Spec, slice.Spec) {
		return false
	}
	o.slices[slice.Name], o.asked = slice, nil
	return true
}

// DropSlice forgets a ResourceSlice.
func (o *Objects) DropSlice(name string) (differs bool) {
	o.asked = nil
	return drop(o.slices, name)
}

// ClearSlices forgets all ResourceSlices, which are unknown then.
func (o *Objects) ClearSlices() (differs bool) {
	o.asked = nil
	return forget(&o.slices)
}

// KnowClaims notes that ResourceClaims are known, even if there are none, and reports whether they were not.
func (o *Objects) KnowClaims() (differs bool) { return know(&o.held) }

// GPUs returns the cards among the devices, by the name of their node.
func (o *Objects) GPUs() map[string][]sharing.DRADevice { return decode.GPUsByNode(o.slices, o.held) }

// Lacks reports whether there are GPUs of which it is unknown whether a claim has them, because claims are unknown, or
// on which node they are, because no slice offers GPUs and claims have some. claiming says that pods have claims.
func (o *Objects) Lacks(claiming bool) (claims, slices bool) {
	offered, held := false, false
	for _, slice := range o.slices {
		offered = offered || decode.OffersGPUs(slice)
	}
	for _, devices := range o.held {
		held = held || decode.HasGPU(devices)
	}
	return o.held == nil && (claiming || offered), held && !offered
}

// PutClaim keeps which devices a ResourceClaim has, and reports whether these differ from what was kept.
func (o *Objects) PutClaim(claim *resourcev1.ResourceClaim) (differs bool) {
	o.KnowClaims()
	held := decode.DevicesOf(claim)
	name := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
	before := o.held[name]
	if o.held[name] = held; held == nil {
		delete(o.held, name)
	}
	return !reflect.DeepEqual(before, held) && (o.offers(before) || o.offers(held))
}

// offers reports whether one of the devices is of a driver with ResourceSlices. Claims of other drivers change nothing.
func (o *Objects) offers(devices []resourcev1.DeviceRequestAllocationResult) bool {
	for _, slice := range o.slices {
		if slices.ContainsFunc(devices, func(r resourcev1.DeviceRequestAllocationResult) bool {
			return r.Driver == slice.Spec.Driver
		}) {
			return true
		}
	}
	return false
}

// DropClaim forgets a ResourceClaim.
func (o *Objects) DropClaim(name types.NamespacedName) (differs bool) {
	return drop(o.held, name)
}

// ClearClaims forgets all ResourceClaims, which are unknown then.
func (o *Objects) ClearClaims() (differs bool) {
	return forget(&o.held)
}

// newKinds notes a change of classes.
func (o *Objects) newKinds() {
	o.kinds++
	o.asked = nil
}

// KnowClasses notes that DeviceClasses are known, even if there are none, and reports whether they were not.
func (o *Objects) KnowClasses() (differs bool) {
	if differs = know(&o.classes); differs {
		o.newKinds()
	}
	return differs
}

// PutClass keeps a DeviceClass. An invalid one is not kept: the allocator cannot take it.
func (o *Objects) PutClass(class *resourcev1.DeviceClass) (differs bool) {
	o.KnowClasses()
	if Check(class) != nil {
		return o.DropClass(class.Name)
	}
	before := o.classes[class.Name]
	o.classes[class.Name] = class
	if differs = before == nil || !reflect.DeepEqual(before.Spec, class.Spec); differs {
		o.newKinds()
	}
	return differs
}

// DropClass forgets a DeviceClass.
func (o *Objects) DropClass(name string) (differs bool) {
	o.newKinds()
	return drop(o.classes, name)
}

// ClearClasses forgets all DeviceClasses, which are unknown then.
func (o *Objects) ClearClasses() (differs bool) {
	o.newKinds()
	return forget(&o.classes)
}

// PutTemplate keeps a ResourceClaimTemplate. An invalid one is not kept: the allocator cannot take it.
func (o *Objects) PutTemplate(template *resourcev1.ResourceClaimTemplate) (differs bool) {
	know(&o.templates)
	name := types.NamespacedName{Namespace: template.Namespace, Name: template.Name}
	if Check(template) != nil {
		return o.DropTemplate(name)
	}
	before := o.templates[name]
	o.templates[name] = template
	if differs = before == nil || !reflect.DeepEqual(before.Spec, template.Spec); differs {
		o.asked = nil
	}
	return differs
}

// DropTemplate forgets a ResourceClaimTemplate.
func (o *Objects) DropTemplate(name types.NamespacedName) (differs bool) {
	o.asked = nil
	return drop(o.templates, name)
}

// ClearTemplates forgets all ResourceClaimTemplates.
func (o *Objects) ClearTemplates() (differs bool) {
	o.asked = nil
	return forget(&o.templates)
}

// nvidiaClass is the DeviceClass of NVIDIA's chart, which counts while DeviceClasses are unknown
// (kubernetes-sigs/dra-driver-nvidia-gpu, deployments/helm, deviceclass-gpu.yaml).
var nvidiaClass = func() *resourcev1.DeviceClass {
	name, class := "nvidia.com/gpu", &resourcev1.DeviceClass{}
	class.Name = "gpu.nvidia.com"
	class.Spec.ExtendedResourceName = &name
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
		Expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}}
	return class
}()

// List returns all DeviceClasses, and Get one of them, for the allocator.
func (o *Objects) List() ([]*resourcev1.DeviceClass, error) {
	if o.classes == nil {
		return []*resourcev1.DeviceClass{nvidiaClass}, nil
	}
	return slices.Collect(maps.Values(o.classes)), nil
}

// heldByPool returns what claims have of each pool.
func (o *Objects) heldByPool() map[pool][]resourcev1.DeviceRequestAllocationResult {
	all := map[pool][]resourcev1.DeviceRequestAllocationResult{}
	for _, name := range slices.SortedFunc(maps.Keys(o.held), byName) {
		for _, result := range o.held[name] {
			from := pool{result.Driver, result.Pool}
			all[from] = append(all[from], result)
		}
	}
	return all
}

func byName(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// Check returns an error for a ResourceClaimTemplate or a DeviceClass that the API server rejects and the allocator
// cannot take. It names the field, the value and what is wanted.
func Check(object any) error {
	if class, is := object.(*resourcev1.DeviceClass); is {
		return checkSelectors("DeviceClass "+class.Name+": spec", class.Spec.Selectors)
	}
	template, is := object.(*resourcev1.ResourceClaimTemplate)
	if !is {
		return nil
	}
	for i, request := range template.Spec.Spec.Devices.Requests {
		at := fmt.Sprintf("ResourceClaimTemplate %s: spec.spec.devices.requests[%d]", template.Name, i)
		switch {
		case request.Exactly == nil && len(request.FirstAvailable) == 0:
			return fmt.Errorf("%s has neither exactly nor firstAvailable: want one of them", at)
		case request.Exactly != nil && len(request.FirstAvailable) > 0:
			return fmt.Errorf("%s has exactly and firstAvailable: want one of them", at)
		case request.Exactly != nil:
			if err := checkAsk(at+".exactly", request.Exactly.Count, request.Exactly.Selectors); err != nil {
				return err
			}
		}
		for j, other := range request.FirstAvailable {
			if err := checkAsk(fmt.Sprintf("%s.firstAvailable[%d]", at, j), other.Count, other.Selectors); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkAsk(at string, count int64, selectors []resourcev1.DeviceSelector) error {
	// A manifest may leave out the count, for which the API server sets 1. A claim has at most 32 devices.
	if count < 0 || count > resourcev1.AllocationResultsMaxSize {
		return fmt.Errorf("%s.count is %d: want 1 to %d", at, count, resourcev1.AllocationResultsMaxSize)
	}
	return checkSelectors(at, selectors)
}

func checkSelectors(at string, selectors []resourcev1.DeviceSelector) error {
	for i, selector := range selectors {
		if selector.CEL == nil {
			return fmt.Errorf("%s.selectors[%d] has no cel: want an expression", at, i)
		}
	}
	return nil
}
