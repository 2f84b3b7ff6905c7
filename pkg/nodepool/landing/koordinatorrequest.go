package landing

import (
	"fmt"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// checkKoordinator checks a request in percent of cards against the rules of Koordinator's scheduler, which otherwise
// places no pod of the group (docs/reference/facts.md#requests-in-percent).
func checkKoordinator(shape *PodShape) []raydemand.Finding {
	asked := func(name string) int64 { return WholeUnits(shape.Requests[name]) }
	shares := asked(gpuinfo.KoordinatorShared)
	invalid := func(name, why, fix string) []raydemand.Finding {
		return []raydemand.Finding{{Code: GPURequestInvalid, Severity: raydemand.Error, Field: name,
			Seen: shape.Requests[name].String(), Why: "Koordinator refuses it: " + why, Fix: fix}}
	}
	for _, name := range []string{gpuinfo.KoordinatorBoth, gpuinfo.KoordinatorCores, gpuinfo.KoordinatorMemoryRatio} {
		switch percent := asked(name); {
		case shares > 0 && name != gpuinfo.KoordinatorBoth && (percent%shares != 0 || percent/shares > 100):
			return invalid(name, fmt.Sprintf("each of %d shares has the same part of one card", shares),
				fmt.Sprintf("ask for a multiple of %d, at most %d", shares, 100*shares))
		case (shares == 0 || name == gpuinfo.KoordinatorBoth) && percent > 100 && percent%100 != 0:
			return invalid(name, "it is more than one card and not whole cards",
				fmt.Sprintf("ask for %d, or for at most 100", (percent+99)/100*100))
		}
	}
	return nil
}
