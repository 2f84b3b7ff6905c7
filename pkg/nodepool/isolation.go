package nodepool

import (
	"cmp"
	"fmt"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// IsolationAnnotation sets on a RayCluster, or as a default on its namespace, which isolation its work requires on
// GPUs: hardware, limit or any. A request that requires an isolation itself overrides both.
const IsolationAnnotation = "heliostat.dev/isolation"

// RequiredIsolation is the weakest isolation that work accepts.
type RequiredIsolation string

// The requirements, strictest first.
const (
	// RequireHardware accepts a dedicated card or MIG instance: memory, bandwidth and faults are isolated.
	RequireHardware RequiredIsolation = "hardware"
	// RequireLimit also accepts a limit in software, where a fault of one workload can end all that share the card.
	RequireLimit RequiredIsolation = "limit"
	// AnyIsolation accepts everything, including time-slicing. It is the default.
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

// IsolationOf combines the values of IsolationAnnotation on the RayCluster and on its namespace; empty means absent.
// The RayCluster's value takes precedence. An invalid value requires hardware, because somebody wanted some isolation,
// and is also returned as an error.
func IsolationOf(cluster, namespace string) (RequiredIsolation, error) {
	said := cmp.Or(cluster, namespace, string(AnyIsolation))
	required, err := ParseRequiredIsolation(said)
	if err != nil {
		return RequireHardware, fmt.Errorf("reading %s: %w", IsolationAnnotation, err)
	}
	return required, nil
}

// Allows reports whether work with this requirement may run on a device with this isolation. Unknown isolation counts
// as none.
func (r RequiredIsolation) Allows(has gpuinfo.Isolation) bool {
	switch r {
	case RequireHardware:
		return has == gpuinfo.Hardware
	case RequireLimit:
		return has == gpuinfo.Hardware || has == gpuinfo.Limit
	}
	return true
}
