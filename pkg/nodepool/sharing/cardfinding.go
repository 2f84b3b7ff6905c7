package sharing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// CardFinding is a fault of a card, or a difference between what the node announces and what the driver reports.
type CardFinding struct {
	Code CardCode `json:"code"`
	// Card is the card's index, nil if the finding is about the whole node.
	Card    *int   `json:"card"`
	Message string `json:"message"`
}

func (f CardFinding) String() string {
	if f.Card == nil {
		return fmt.Sprintf("%s: %s", f.Code, f.Message)
	}
	return fmt.Sprintf("%s: card %d: %s", f.Code, *f.Card, f.Message)
}

// CardCode names a finding for programs; it is stable.
type CardCode string

// The findings of cards.
const (
	// CardUnhealthy: no work should go to the card.
	CardUnhealthy CardCode = "card-unhealthy"
	// RowsPending: memory rows are remapped at the next reset. PagesPending: memory pages are retired when the driver
	// is loaded again. ErrorsUncorrected: since the last reset, ECC found errors that it could not correct.
	RowsPending       CardCode = "rows-pending"
	PagesPending      CardCode = "pages-pending"
	ErrorsUncorrected CardCode = "errors-uncorrected"
	// MIGPending: the mode changes at the next reset. MIGEmpty: MIG is on and there are no instances, so nothing can
	// run.
	MIGPending CardCode = "mig-pending"
	MIGEmpty   CardCode = "mig-empty"
	// InstanceUnusable: a GPU instance without a compute instance.
	InstanceUnusable CardCode = "instance-unusable"
	// LayoutUnknown: the driver does not show instances to this process. LayoutImpossible: the placement tables do not
	// allow the layout.
	LayoutUnknown    CardCode = "layout-unknown"
	LayoutImpossible CardCode = "layout-impossible"
	// ProcessOutsidePods: a process outside any pod uses the card, and no scheduler knows about it.
	ProcessOutsidePods CardCode = "process-outside-pods"
	// CardsDiffer, ProductDiffers, UnitsDiffer: the node and the driver report different numbers of cards, products, or
	// units.
	CardsDiffer    CardCode = "cards-differ"
	ProductDiffers CardCode = "product-differs"
	UnitsDiffer    CardCode = "units-differ"
)

// CheckCards examines the cards alone.
func CheckCards(inventory gpuinfo.Inventory) []CardFinding {
	findings := []CardFinding{}
	for _, card := range inventory.Cards {
		add := func(code CardCode, format string, args ...any) {
			findings = append(findings, CardFinding{code, new(card.Index), fmt.Sprintf(format, args...)})
		}
		if !card.Healthy {
			add(CardUnhealthy, "%s", card.Problem)
		}
		if card.Rows != nil && card.Rows.Pending {
			add(RowsPending,
				"memory rows are remapped at the next reset of the card; until then the driver keeps work off them")
		}
		if card.Pages != nil && card.Pages.Pending {
			add(PagesPending, "memory pages are retired when the driver is loaded again; until then work may use them")
		}
		if card.Uncorrected != nil && *card.Uncorrected > 0 {
			add(ErrorsUncorrected, "%d memory errors since the last reset that ECC could not correct",
				*card.Uncorrected)
		}
		if card.Cut != nil {
			checkCut(*card.Cut, card.Product, add)
		}
	}
	return findings
}

func checkCut(cut gpuinfo.Cut, model string, add func(CardCode, string, ...any)) {
	if cut.Pending != cut.Enabled {
		add(MIGPending, "MIG is %s and will be %s after the next reset of the card", onOff(cut.Enabled),
			onOff(cut.Pending))
	}
	switch {
	case !cut.Enabled:
		return
	case cut.Instances == nil:
		add(LayoutUnknown,
			"the driver does not show MIG instances to this process: run it as root or with CAP_SYS_ADMIN, "+
				"in a container also with NVIDIA_MIG_MONITOR_DEVICES=all")
		return
	case len(cut.Instances) == 0:
		add(MIGEmpty, "MIG is on and there are no instances: nothing can run on the card")
	}
	for _, instance := range cut.Instances {
		if instance.Compute == 0 {
			add(InstanceUnusable, "%s at %d has no compute instance: nothing can run there", instance.Profile,
				instance.Start)
		}
	}
	if product, known := gpuinfo.ProductOf(model); known {
		if err := product.Check(cut.Layout()); err != nil {
			add(LayoutImpossible, "the placement tables of %s do not allow this layout: %v", product.Name, err)
		}
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// ProcessesOutsidePods finds processes that use a card and are in no pod. known is false for a process in another PID
// namespace, which cannot be seen.
func ProcessesOutsidePods(inventory gpuinfo.Inventory, inPod func(pid uint32) (in, known bool)) []CardFinding {
	findings := []CardFinding{}
	for _, card := range inventory.Cards {
		for _, process := range card.Processes {
			if in, known := inPod(process.PID); known && !in {
				findings = append(findings, CardFinding{ProcessOutsidePods, new(card.Index),
					fmt.Sprintf("process %d (%s%s) is in no pod: no scheduler knows about it",
						process.PID, process.Kind, holding(process.Memory))})
			}
		}
	}
	return findings
}

func holding(memory *gpuinfo.MiB) string {
	if memory == nil {
		return ""
	}
	return fmt.Sprintf(", %d MiB", *memory)
}

// CompareCards reports where a node's announcements differ from what the driver reports. Values that the node does not
// show are not compared.
func CompareCards(node GPUs, inventory gpuinfo.Inventory) []CardFinding {
	findings := []CardFinding{}
	add := func(code CardCode, format string, args ...any) {
		findings = append(findings, CardFinding{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	if node.Cards != nil && *node.Cards != int64(len(inventory.Cards)) {
		add(CardsDiffer, "node %s has %d cards by its labels, %d by the driver", node.Name, *node.Cards,
			len(inventory.Cards))
	}
	compareProducts(node, inventory, add)
	expected, known := expectedUnits(node, inventory)
	if !known {
		return findings
	}
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		if announced := node.Units[name]; announced != expected[name] {
			add(UnitsDiffer, "node %s announces %s %d, but the driver reports %d usable", node.Name, name, announced,
				expected[name])
		}
	}
	return findings
}

func compareProducts(node GPUs, inventory gpuinfo.Inventory, add func(CardCode, string, ...any)) {
	labelled, known := node.KnownProduct()
	if !known {
		return
	}
	for _, card := range inventory.Cards {
		if seen, known := gpuinfo.ProductOf(card.Product); known && seen.Name != labelled.Name {
			add(ProductDiffers, "node %s has %s by its labels, but card %d is %s", node.Name, *node.Product, card.Index,
				card.Product)
			return
		}
	}
}

// expectedUnits returns what NVIDIA's device plugin would announce for these cards: healthy cards without MIG, each as
// often as it is shared, and instances with their compute instances. The second result is false if another plugin
// shares memory, if shares of instances are announced, or if the layout is unknown.
func expectedUnits(node GPUs, inventory gpuinfo.Inventory) (map[string]int64, bool) {
	whole, instances, ok := usable(inventory)
	expected := map[string]int64{}
	switch {
	case node.Units == nil:
		return nil, false
	case node.Kind == gpuinfo.Whole || node.Kind == gpuinfo.WholeUnproven:
		expected[gpuinfo.NvidiaGPU] = whole
	case (node.Kind == gpuinfo.TimeSliced || node.Kind == gpuinfo.MPS) && node.Profile == nil && node.Replicas != nil &&
		len(instances) == 0:
		expected[sharedName(node)] = whole * *node.Replicas
	case node.Kind != gpuinfo.MIG || node.Isolation != gpuinfo.Hardware || !ok:
		return nil, false
	case node.Profile != nil:
		expected[gpuinfo.NvidiaGPU] = 0 // report it also if none is left
		for _, n := range instances {
			expected[gpuinfo.NvidiaGPU] += n
		}
	default:
		for name := range node.Units {
			if strings.HasPrefix(name, "nvidia.com/mig-") {
				expected[name] = 0
			}
		}
		for profile, n := range instances {
			if name, err := gpuinfo.ParseProfile(profile); err == nil {
				expected[gpuinfo.ResourceName(name, false)] = n
			}
		}
		expected[gpuinfo.NvidiaGPU] = whole
	}
	return expected, true
}

// usable counts the healthy cards without MIG, and the compute instances on healthy cards by the profile of their GPU
// instance.
func usable(inventory gpuinfo.Inventory) (whole int64, instances map[string]int64, ok bool) {
	instances, ok = map[string]int64{}, true
	for _, card := range inventory.Cards {
		switch {
		case !card.Healthy:
		case card.Cut == nil || !card.Cut.Enabled:
			whole++
		case card.Cut.Instances == nil:
			ok = false
		default:
			for _, instance := range card.Cut.Instances {
				instances[instance.Profile] += int64(instance.Compute)
			}
		}
	}
	return whole, instances, ok
}

func sharedName(node GPUs) string {
	if _, renamed := node.Units[gpuinfo.NvidiaGPUShared]; renamed {
		return gpuinfo.NvidiaGPUShared
	}
	return gpuinfo.NvidiaGPU
}
