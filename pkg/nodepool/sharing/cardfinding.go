package sharing

import (
	"fmt"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// CardFinding is a fault of a card.
type CardFinding struct {
	Code CardCode `json:"code"`
	// Card is the card's index.
	Card    int    `json:"card"`
	Message string `json:"message"`
}

func (f CardFinding) String() string {
	return fmt.Sprintf("%s: card %d: %s", f.Code, f.Card, f.Message)
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
)

// CheckCards examines the cards alone.
func CheckCards(inventory gpuinfo.Inventory) []CardFinding {
	findings := []CardFinding{}
	for _, card := range inventory.Cards {
		add := func(code CardCode, format string, args ...any) {
			findings = append(findings, CardFinding{code, card.Index, fmt.Sprintf(format, args...)})
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
