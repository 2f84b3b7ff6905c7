package sharing

import (
	"fmt"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// CardFaults returns what is wrong with a card.
func CardFaults(card gpuinfo.Card) (faults []string) {
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if !card.Healthy {
		add("%s", card.Problem)
	}
	if faults = append(faults, MemoryFaults(card)...); card.Cut == nil {
		return faults
	}
	onOff := map[bool]string{true: "on", false: "off"}
	if cut := card.Cut; cut.Pending != cut.Enabled {
		add("MIG is %s and will be %s after the next reset of the card", onOff[cut.Enabled], onOff[cut.Pending])
	}
	switch {
	case !card.Cut.Enabled:
		return faults
	case card.Cut.Instances == nil:
		add("the driver does not show MIG instances to this process: run it as root or with CAP_SYS_ADMIN, in a " +
			"container also with NVIDIA_MIG_MONITOR_DEVICES=all")
		return faults
	case len(card.Cut.Instances) == 0:
		add("MIG is on and there are no instances: nothing can run on the card")
	}
	for _, instance := range card.Cut.Instances {
		if instance.Compute == 0 {
			add("%s at %d has no compute instance: nothing can run there", instance.Profile, instance.Start)
		}
	}
	if product, known := gpuinfo.ProductOf(card.Product); known {
		if err := product.Check(card.Cut.Layout()); err != nil {
			add("the placement tables of %s do not allow this layout: %v", product.Name, err)
		}
	}
	return faults
}

// MemoryFaults returns the errors and repairs of a card's memory with which work may continue.
func MemoryFaults(card gpuinfo.Card) (faults []string) {
	if card.Rows != nil && card.Rows.Pending {
		faults = append(faults, "memory rows are remapped at the next reset of the card; until then the driver keeps "+
			"work off them")
	}
	if card.Pages != nil && card.Pages.Pending {
		faults = append(faults,
			"memory pages are retired when the driver is loaded again; until then work may use them")
	}
	if card.Uncorrected != nil && *card.Uncorrected > 0 {
		faults = append(faults, fmt.Sprintf("%d memory errors since the last reset that ECC could not correct",
			*card.Uncorrected))
	}
	return faults
}
