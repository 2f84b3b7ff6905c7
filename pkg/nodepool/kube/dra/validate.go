package dra

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
)

// Check returns an error for a ResourceClaimTemplate or a DeviceClass that the API server rejects and the allocator
// cannot take. It names the field, the value and what is wanted.
func Check(object any) error {
	switch o := object.(type) {
	case *resourcev1.ResourceClaimTemplate:
		return checkTemplate(o)
	case *resourcev1.DeviceClass:
		return checkSelectors("DeviceClass "+o.Name+": spec", o.Spec.Selectors)
	}
	return nil
}

func checkTemplate(template *resourcev1.ResourceClaimTemplate) error {
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
