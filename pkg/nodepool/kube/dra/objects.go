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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// The resources of resource.k8s.io whose objects count.
const (
	ResourceSlices         = "resourceslices"
	ResourceClaims         = "resourceclaims"
	DeviceClasses          = "deviceclasses"
	ResourceClaimTemplates = "resourceclaimtemplates"
)

// New returns an object of a kind that counts, to be filled in and put; nil for any other kind.
func New(kind string) metav1.Object {
	switch kind {
	case "ResourceSlice":
		return &resourcev1.ResourceSlice{}
	case "ResourceClaim":
		return &resourcev1.ResourceClaim{}
	case "DeviceClass":
		return &resourcev1.DeviceClass{}
	case "ResourceClaimTemplate":
		return &resourcev1.ResourceClaimTemplate{}
	}
	return nil
}

// Know notes that the objects of a resource are known, even if there are none, and reports whether they were not.
func (o *Objects) Know(resource string) (differs bool) {
	switch resource {
	case ResourceSlices:
		return know(&o.slices)
	case ResourceClaims:
		return know(&o.held)
	case ResourceClaimTemplates:
		return know(&o.templates)
	}
	if differs = know(&o.classes); differs {
		o.changed(resource)
	}
	return differs
}

func know[K comparable, V any](objects *map[K]V) (differs bool) {
	if differs = *objects == nil; differs {
		*objects = map[K]V{}
	}
	return differs
}

// changed notes a change of all but claims.
func (o *Objects) changed(resource string) {
	if o.asked = nil; resource == DeviceClasses {
		o.kinds++
	}
}

// Put keeps an object that New returned, of a claim which devices it has, and reports whether that changes something.
// An invalid DeviceClass or ResourceClaimTemplate is not kept: the allocator cannot take it.
func (o *Objects) Put(object metav1.Object) (differs bool) {
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	switch object := object.(type) {
	case *resourcev1.ResourceSlice:
		know(&o.slices)
		before := o.slices[object.Name]
		if before != nil && reflect.DeepEqual(before.Spec, object.Spec) {
			return false // what is known of its devices stays
		}
		o.slices[object.Name] = object
		o.changed(ResourceSlices)
		return true
	case *resourcev1.ResourceClaim:
		know(&o.held)
		held, before := decode.DevicesOf(object), o.held[name]
		if o.held[name] = held; held == nil {
			delete(o.held, name)
		}
		return !reflect.DeepEqual(before, held) && (o.offers(before) || o.offers(held))
	case *resourcev1.DeviceClass:
		o.Know(DeviceClasses)
		if Check(object) != nil {
			return o.Drop(DeviceClasses, name)
		}
		before := o.classes[object.Name]
		o.classes[object.Name] = object
		if differs = before == nil || !reflect.DeepEqual(before.Spec, object.Spec); differs {
			o.changed(DeviceClasses)
		}
	case *resourcev1.ResourceClaimTemplate:
		know(&o.templates)
		if Check(object) != nil {
			return o.Drop(ResourceClaimTemplates, name)
		}
		before := o.templates[name]
		o.templates[name] = object
		if differs = before == nil || !reflect.DeepEqual(before.Spec, object.Spec); differs {
			o.changed(ResourceClaimTemplates)
		}
	}
	return differs
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

// Drop forgets an object of a resource, and reports whether it was there.
func (o *Objects) Drop(resource string, name types.NamespacedName) (differs bool) {
	if resource == ResourceClaims {
		_, differs = o.held[name]
		delete(o.held, name)
		return differs
	}
	before := len(o.slices) + len(o.classes) + len(o.templates)
	switch o.changed(resource); resource {
	case ResourceSlices:
		delete(o.slices, name.Name)
	case DeviceClasses:
		delete(o.classes, name.Name)
	case ResourceClaimTemplates:
		delete(o.templates, name)
	}
	return len(o.slices)+len(o.classes)+len(o.templates) < before
}

// Clear forgets all objects of a resource, which are unknown then, and reports whether there were any.
func (o *Objects) Clear(resource string) (differs bool) {
	switch {
	case resource == ResourceClaims:
		differs, o.held = len(o.held) > 0, nil
		return differs
	case resource == ResourceSlices:
		differs, o.slices = len(o.slices) > 0, nil
	case resource == DeviceClasses:
		differs, o.classes = len(o.classes) > 0, nil
	default:
		differs, o.templates = len(o.templates) > 0, nil
	}
	o.changed(resource)
	return differs
}

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
		}
		for j, other := range alternativesOf(request) {
			at := fmt.Sprintf("%s.firstAvailable[%d]", at, j)
			if request.Exactly != nil {
				at = strings.Replace(at, "firstAvailable[0]", "exactly", 1)
			}
			// A manifest may leave out the count, for which the API server sets 1. A claim has at most 32 devices.
			if other.Count < 0 || other.Count > resourcev1.AllocationResultsMaxSize {
				return fmt.Errorf("%s.count is %d: want 1 to %d", at, other.Count, resourcev1.AllocationResultsMaxSize)
			}
			if err := checkSelectors(at, other.Selectors); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkSelectors(at string, selectors []resourcev1.DeviceSelector) error {
	for i, selector := range selectors {
		if selector.CEL == nil {
			return fmt.Errorf("%s.selectors[%d] has no cel: want an expression", at, i)
		}
	}
	return nil
}
