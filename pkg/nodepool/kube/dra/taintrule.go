package dra

import (
	"maps"
	"reflect"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
)

// PutRule keeps a DeviceTaintRule, and reports whether that changes the taints of a device. Its fields are the same in
// the API versions v1alpha3 and v1beta2.
func (o *Objects) PutRule(rule *resourcev1alpha3.DeviceTaintRule) (differs bool) {
	if o.rules == nil {
		o.rules = map[string]*resourcev1alpha3.DeviceTaintRule{}
	}
	o.rules[rule.Name] = rule
	return o.taintAll()
}

// DropRule forgets a DeviceTaintRule.
func (o *Objects) DropRule(name string) (differs bool) {
	delete(o.rules, name)
	return o.taintAll()
}

// ClearRules forgets all DeviceTaintRules.
func (o *Objects) ClearRules() (differs bool) {
	o.rules = nil
	return o.taintAll()
}

// taintAll applies the rules to all ResourceSlices, and reports whether that changes one.
func (o *Objects) taintAll() (differs bool) {
	for _, slice := range o.offered {
		differs = o.taint(slice) || differs
	}
	return differs
}

// taint adds the taints of the rules to a ResourceSlice, as kube-scheduler does
// (k8s.io/dynamic-resource-allocation/resourceslice/tracker), and reports whether the result differs.
func (o *Objects) taint(slice *resourcev1.ResourceSlice) (differs bool) {
	tainted := slice
	for _, name := range slices.Sorted(maps.Keys(o.rules)) {
		rule := o.rules[name].Spec
		for i := range slice.Spec.Devices {
			if !selects(rule.DeviceSelector, slice, slice.Spec.Devices[i].Name) {
				continue
			}
			if tainted == slice {
				tainted = slice.DeepCopy()
			}
			device := &tainted.Spec.Devices[i]
			device.Taints = append(device.Taints, resourcev1.DeviceTaint{
				Key: rule.Taint.Key, Value: rule.Taint.Value, Effect: resourcev1.DeviceTaintEffect(rule.Taint.Effect),
			})
		}
	}
	before, known := o.slices[slice.Name]
	if known && reflect.DeepEqual(before.Spec, tainted.Spec) {
		return false
	}
	o.slices[slice.Name], o.asked = tainted, nil
	o.GPUs.PutSlice(tainted)
	return true
}

// selects reports whether a rule is about a device. A rule without a selector is about none, and an empty one about
// all.
func selects(s *resourcev1alpha3.DeviceTaintSelector, slice *resourcev1.ResourceSlice, device string) bool {
	if s == nil {
		return false
	}
	for _, want := range []struct {
		name *string
		is   string
	}{{s.Driver, slice.Spec.Driver}, {s.Pool, slice.Spec.Pool.Name}, {s.Device, device}} {
		if want.name != nil && *want.name != want.is {
			return false
		}
	}
	return true
}
