package nodepool

import (
	"cmp"
	"fmt"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// IsolationAnnotation says on a RayCluster, or as a default on its namespace, what must keep its work on GPUs apart from others': hardware,
// limit or any. A request that asks for an isolation of its own goes before both.
const IsolationAnnotation = "heliostat.dev/isolation"

// RequiredIsolation is the least isolation that work accepts.
type RequiredIsolation string

// The requirements, the strictest first.
const (
	// RequireHardware accepts an own card or MIG instance: memory, bandwidth and faults are apart.
	RequireHardware RequiredIsolation = "hardware"
	// RequireLimit accepts a cap in software too; a fault of one can end all that share the card.
	RequireLimit RequiredIsolation = "limit"
	// AnyIsolation accepts everything, time-slicing too, and is what holds where nothing is said.
	AnyIsolation RequiredIsolation = "any"
)

// ParseRequiredIsolation reads hardware, limit or any.
func ParseRequiredIsolation(text string) (RequiredIsolation, error) {
	switch required := RequiredIsolation(text); required {
	case RequireHardware, RequireLimit, AnyIsolation:
		return required, nil
	}
	return "", fmt.Errorf("reading isolation %q: want hardware, limit or any", text)
}

// IsolationOf joins what the annotation IsolationAnnotation of the RayCluster and of its namespace say; empty means absent. The RayCluster
// goes first. One that cannot be read requires hardware, for somebody wanted more than nothing, and is told in the error.
func IsolationOf(cluster, namespace string) (RequiredIsolation, error) {
	said := cmp.Or(cluster, namespace, string(AnyIsolation))
	required, err := ParseRequiredIsolation(said)
	if err != nil {
		return RequireHardware, fmt.Errorf("reading %s: %w", IsolationAnnotation, err)
	}
	return required, nil
}

// Allows reports whether work with this requirement may land where so much is kept apart. Unknown isolation is none: nobody promises any.
func (r RequiredIsolation) Allows(has gpuinfo.Isolation) bool {
	switch r {
	case RequireHardware:
		return has == gpuinfo.Hardware
	case RequireLimit:
		return has == gpuinfo.Hardware || has == gpuinfo.Limit
	}
	return true
}
