package printer

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// oneReading says what the tables cannot show.
const oneReading = "This is one reading of the driver, so it shows no XIDs; autoscaler agent receives them."

// WriteGPUs writes cards, memory errors, instances and processes, each as a table if there are any, and then findings.
func WriteGPUs(p *Page, report GPUs) {
	fmt.Fprintf(p, "driver %s, %d cards\n", report.Driver, len(report.Cards))
	if len(report.Cards) > 0 {
		p.WriteString("\n" + cardTable(report.Cards))
	}
	for _, part := range []string{errorTable(report.Cards), instanceTable(report.Cards), processTable(report.Cards)} {
		if part != "" {
			p.WriteString("\n" + part)
		}
	}
	if len(report.Cards) > 0 {
		p.WriteString("\n" + oneReading + "\n")
	}
	if len(report.Findings) > 0 {
		p.WriteString("\nPROBLEMS\n")
	}
	for _, finding := range report.Findings {
		p.WriteString(folded(finding.String(), PageWidth))
	}
}

// aligned aligns rows whose cells are separated by tabs.
func aligned(rows []string) string {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(columns, row)
	}
	_ = columns.Flush() // a Builder does not fail
	return text.String()
}

func cardTable(cards []gpuinfo.Card) string {
	rows := []string{"CARD\tPRODUCT\tMIB\tFREE MIB\tMIG\tHEALTHY"}
	for _, card := range cards {
		// The vendor's name is omitted, because the longest names would not fit otherwise.
		rows = append(rows, strings.Join([]string{strconv.Itoa(card.Index),
			orNone(strings.TrimPrefix(card.Product, "NVIDIA ")), mebibytes(card.Memory), mebibytes(card.Free),
			migMode(card.Cut), map[bool]string{true: "yes", false: "no"}[card.Healthy]}, "\t"))
	}
	return aligned(rows)
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

// errorTable has a line for each card that counts memory errors. Ampere and later remap rows; earlier GPUs retire
// pages.
func errorTable(cards []gpuinfo.Card) string {
	rows := []string{"CARD\tUNCORRECTED ERRORS\tREMAPPED ROWS\tRETIRED PAGES"}
	for _, card := range cards {
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
			rows = append(rows, fmt.Sprintf("%d\t%s\t%s\t%s", card.Index, uncorrected, remapped, retired))
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return aligned(rows)
}

func replaced(n int, pending bool) string {
	if pending {
		return strconv.Itoa(n) + ", more pending"
	}
	return strconv.Itoa(n)
}

// instanceTable has a line for each partitioned card: its instances and their positions.
func instanceTable(cards []gpuinfo.Card) string {
	var rows []string
	for _, card := range cards {
		if card.Cut == nil || len(card.Cut.Instances) == 0 {
			continue
		}
		var instances []string
		for _, instance := range card.Cut.Layout() {
			instances = append(instances, fmt.Sprintf("%s@%d", instance.Profile, instance.Start))
		}
		// Seven instances with attributes are wider than a line.
		text := strings.TrimSuffix(folded(strings.Join(instances, " "), PageWidth-len("CARD  ")), "\n")
		for i, line := range strings.Split(text, "\n") {
			name := ""
			if i == 0 {
				name = strconv.Itoa(card.Index)
			}
			rows = append(rows, name+"\t"+strings.TrimSpace(line))
		}
	}
	if len(rows) == 0 {
		return ""
	}
	return aligned(append([]string{"CARD\tINSTANCES, WITH WHERE ON THE MEMORY AXIS THEY BEGIN"}, rows...))
}

func processTable(cards []gpuinfo.Card) string {
	rows := []string{"CARD\tPROCESS\tKIND\tMIB\tINSTANCE"}
	for _, card := range cards {
		for _, process := range card.Processes {
			instance := unknownCell
			if process.Instance != nil {
				instance = strconv.FormatUint(uint64(*process.Instance), 10)
			}
			rows = append(
				rows,
				fmt.Sprintf("%d\t%d\t%s\t%s\t%s", card.Index, process.PID, process.Kind, mebibytes(process.Memory),
					instance),
			)
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return aligned(rows)
}

// folded breaks a sentence into lines of that width and indents all but the first.
func folded(sentence string, width int) string {
	const indent = "  "
	var text strings.Builder
	line := ""
	for _, word := range strings.Fields(sentence) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			text.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
	}
	return text.String() + line + "\n"
}

// GPUs is the output of `gpus -o json`; null stands for what the driver does not report, and for the node if none was
// requested.
type GPUs struct {
	gpuinfo.Inventory
	Node     *sharing.GPUs         `json:"node"`
	Findings []sharing.CardFinding `json:"findings"`
}
