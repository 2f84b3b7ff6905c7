package printer

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
)

// oneReading says what the table cannot show.
const oneReading = "This is one reading of the driver, so it shows no XIDs; autoscaler agent receives them."

// WriteGPUs writes a line for each card, and then findings.
func WriteGPUs(p *Page, report GPUs) {
	fmt.Fprintf(p, "driver %s, %d cards\n", report.Driver, len(report.Cards))
	// Ampere and later remap rows; earlier GPUs retire pages. The instances are those of MIG, with where they begin on
	// the memory axis.
	t := newTable("CARD", "PRODUCT", "MIB", "FREE MIB", "MIG", "HEALTHY", "UNCORRECTED ERRORS", "REMAPPED ROWS",
		"RETIRED PAGES", "INSTANCES")
	for _, card := range report.Cards {
		remapped, retired, instances := "", "", []string{}
		if r := card.Rows; r != nil {
			remapped = replaced(r.Corrected+r.Uncorrected, r.Pending)
		}
		if pages := card.Pages; pages != nil {
			retired = replaced(pages.SingleBit+pages.DoubleBit, pages.Pending)
		}
		if card.Cut != nil {
			for _, instance := range card.Cut.Layout() {
				instances = append(instances, fmt.Sprintf("%s@%d", instance.Profile, instance.Start))
			}
		}
		t.Add(card.Index, card.Product, mebibytes(card.Memory), mebibytes(card.Free), migMode(card.Cut),
			yesOrNo[card.Healthy], known(card.Uncorrected), remapped, retired, strings.Join(instances, " "))
	}
	t.WriteApart(p)
	if len(report.Cards) > 0 {
		p.WriteString("\n" + oneReading + "\n")
	}
	if len(report.Findings) > 0 {
		p.WriteString("\nPROBLEMS\n")
	}
	for _, finding := range report.Findings {
		p.Line("", finding)
	}
}

var yesOrNo = map[bool]string{true: "yes", false: "no"}

func mebibytes(amount *gpuinfo.MiB) any {
	if amount == nil {
		return ""
	}
	return int64(*amount)
}

func migMode(cut *gpuinfo.Cut) string {
	word := map[bool]string{true: "on", false: "off"}
	switch {
	case cut == nil:
		return ""
	case cut.Enabled != cut.Pending:
		return word[cut.Enabled] + ", then " + word[cut.Pending]
	}
	return word[cut.Enabled]
}

func replaced(n int, pending bool) string {
	return fmt.Sprint(n) + map[bool]string{true: ", more pending"}[pending]
}

// GPUs is the output of `gpus -o json`; null stands for what the driver does not report.
type GPUs struct {
	gpuinfo.Inventory
	Findings []string `json:"findings"`
}
