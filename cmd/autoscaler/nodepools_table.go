package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// writeNodepools writes nodes, pools, problems and notes, each where there are any.
func writeNodepools(out io.Writer, report nodepoolsReport) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tPOOL\tKIND\tPRODUCT\tCARDS\tUNITS\tFREE\tMIB PER UNIT\tFREE PER CARD\tISOLATION")
	for _, n := range report.Nodes {
		fmt.Fprintln(table, strings.Join([]string{
			n.Name, orDash(n.Pool), string(n.Kind), orDash(n.Product), count(n.Cards), amounts(n.Units), amounts(n.Free), amounts(n.MemoryMiB), perCard(n.PerCard), string(n.Isolation),
		}, "\t"))
	}
	if len(report.Pools) > 0 {
		fmt.Fprintln(table, "\nPOOL\tPROVIDER\tNODES\tMIN\tMAX\tKIND\tPRODUCT\tCARDS\tUNITS\tFREE\tISOLATION\tPRICE\tSPOT\tTAINTS")
	}
	for _, p := range report.Pools {
		least, most := bounds(p.Ceiling)
		fmt.Fprintln(table, strings.Join([]string{
			p.Name, p.Provider, strconv.Itoa(p.Nodes), least, most, string(p.Kind), orDash(p.Product), count(p.Cards), amounts(p.Units), amounts(p.Free),
			string(p.Isolation), nodePrice(p.Price), strconv.FormatBool(p.Spot), orNone(strings.Join(p.Taints, ",")),
		}, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := writeProblems(out, report.Nodes); err != nil {
		return err
	}
	for _, note := range report.Notes {
		if _, err := fmt.Fprintf(out, "\nNote: %s\n", note); err != nil {
			return err
		}
	}
	return nil
}

// perCard is what is free on each card, in MiB, or in units where memory is not known (1u).
func perCard(cards []nodepool.Card) string {
	parts := make([]string, 0, len(cards))
	for _, card := range cards {
		switch {
		case card.FreeMiB != nil:
			parts = append(parts, strconv.FormatInt(*card.FreeMiB, 10)+"MiB")
		case card.FreeUnits != nil:
			parts = append(parts, strconv.FormatInt(*card.FreeUnits, 10)+"u")
		default:
			parts = append(parts, "?")
		}
	}
	return orNone(strings.Join(parts, ","))
}

// bounds are a pool's least and most nodes; limits on resources stand beside the most.
func bounds(ceiling *nodepool.Ceiling) (least, most string) {
	if ceiling == nil {
		return unknownCell, unknownCell
	}
	var parts []string
	if ceiling.MaxNodes != nil {
		parts = append(parts, count(ceiling.MaxNodes))
	}
	for _, name := range slices.Sorted(maps.Keys(ceiling.Limits)) {
		parts = append(parts, name+"="+ceiling.Limits[name].String())
	}
	return count(ceiling.MinNodes), orNone(strings.Join(parts, ","))
}

func nodePrice(value *float64) string {
	if value == nil {
		return unknownCell
	}
	return strconv.FormatFloat(*value, 'f', -1, 64)
}

func writeProblems(out io.Writer, nodes []nodepool.NodeGPUs) error {
	var text strings.Builder
	unknown := false
	for _, n := range nodes {
		for _, problem := range n.Problems {
			fmt.Fprintf(&text, "%s: %s\n", n.Name, problem)
			unknown = unknown || problem.Code == nodepool.ResourceNotKnown
		}
	}
	if text.Len() == 0 {
		return nil
	}
	if unknown {
		text.WriteString("--resource NAME=KIND says what a resource is that is not known; KIND is " + strings.Join(configurable(), ", ") + "\n")
	}
	_, err := io.WriteString(out, "\nPROBLEMS\n"+text.String())
	return err
}

const unknownCell = "-"

func orDash(value *string) string {
	if value == nil {
		return unknownCell
	}
	return *value
}

func orNone(value string) string {
	if value == "" {
		return unknownCell
	}
	return value
}

func count(value *int64) string {
	if value == nil {
		return unknownCell
	}
	return strconv.FormatInt(*value, 10)
}

func amounts(values map[string]int64) string {
	parts := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, values[name]))
	}
	return orNone(strings.Join(parts, ","))
}
