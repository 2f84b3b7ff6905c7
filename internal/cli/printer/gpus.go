package printer

import (
	"fmt"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// oneReading says what the tables cannot show.
const oneReading = "This is one reading of the driver, so it shows no XIDs; autoscaler agent receives them."

// WriteGPUs writes cards, memory errors and instances, each as a table if there are any, and then findings.
func WriteGPUs(p *Page, report GPUs) {
	fmt.Fprintf(p, "driver %s, %d cards\n", report.Driver, len(report.Cards))
	cards := newTable(p, "CARD", "PRODUCT", "MIB", "FREE MIB", "MIG", "HEALTHY")
	// Ampere and later remap rows; earlier GPUs retire pages.
	memory := newTable(p, "CARD", "UNCORRECTED ERRORS", "REMAPPED ROWS", "RETIRED PAGES")
	instances := newTable(p, "CARD", "~INSTANCES, WITH WHERE ON THE MEMORY AXIS THEY BEGIN")
	for _, card := range report.Cards {
		// The vendor's name is omitted, because the longest names would not fit otherwise.
		cards.Add(card.Index, orNone(strings.TrimPrefix(card.Product, "NVIDIA ")), mebibytes(card.Memory),
			mebibytes(card.Free), migMode(card.Cut), map[bool]string{true: "yes", false: "no"}[card.Healthy])
		addErrors(memory, card)
		if card.Cut != nil && len(card.Cut.Instances) > 0 {
			var layout []string
			for _, instance := range card.Cut.Layout() {
				layout = append(layout, fmt.Sprintf("%s@%d", instance.Profile, instance.Start))
			}
			instances.Add(card.Index, strings.Join(layout, " "))
		}
	}
	for _, t := range []*Table{cards, memory, instances} {
		t.WriteApart(p)
	}
	if len(report.Cards) > 0 {
		p.WriteString("\n" + oneReading + "\n")
	}
	if len(report.Findings) > 0 {
		p.WriteString("\nPROBLEMS\n")
	}
	for _, finding := range report.Findings {
		p.WriteString(fold(strings.Fields(finding.String()), "", "  "))
	}
}

func mebibytes(amount *gpuinfo.MiB) string {
	if amount == nil {
		return unknownCell
	}
	return strconv.FormatInt(int64(*amount), 10)
}

func migMode(cut *gpuinfo.Cut) string {
	word := map[bool]string{true: "on", false: "off"}
	switch {
	case cut == nil:
		return unknownCell
	case cut.Enabled != cut.Pending:
		return word[cut.Enabled] + ", then " + word[cut.Pending]
	}
	return word[cut.Enabled]
}

// addErrors adds a card that counts memory errors.
func addErrors(t *Table, card gpuinfo.Card) {
	uncorrected, remapped, retired := unknownCell, unknownCell, unknownCell
	if card.Uncorrected != nil {
		uncorrected = strconv.FormatUint(*card.Uncorrected, 10)
	}
	if r := card.Rows; r != nil {
		remapped = replaced(r.Corrected+r.Uncorrected, r.Pending)
	}
	if p := card.Pages; p != nil {
		retired = replaced(p.SingleBit+p.DoubleBit, p.Pending)
	}
	if card.Uncorrected != nil || card.Rows != nil || card.Pages != nil {
		t.Add(card.Index, uncorrected, remapped, retired)
	}
}

func replaced(n int, pending bool) string {
	if pending {
		return strconv.Itoa(n) + ", more pending"
	}
	return strconv.Itoa(n)
}

// GPUs is the output of `gpus -o json`; null stands for what the driver does not report.
type GPUs struct {
	gpuinfo.Inventory
	Findings []sharing.CardFinding `json:"findings"`
}
