package printer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// WriteNodepools writes nodes, pools, problems and notes, each if there are any.
func WriteNodepools(p *Page, report apiv1.NodepoolsReport) {
	if len(report.Nodes) == 0 {
		p.Line("", "No nodes found.")
	} else {
		writeNodes(p, report.Nodes)
	}
	writePools(p, report.Pools)
	writeProblems(p, report.Nodes)
	for _, note := range report.Notes {
		p.Line("", "")
		p.Line("", "Note: "+note)
	}
}

func writeNodes(p *Page, nodes []sharing.GPUs) {
	t := newTable("NODE", "POOL", "KIND", "PRODUCT", "CARDS", "ISOLATION", "FREE/UNITS", "MIB PER UNIT*",
		"FREE PER CARD*")
	for _, n := range nodes {
		t.Add(n.Name, known(n.Pool), n.Kind, known(n.Product), known(n.Cards), n.Isolation, freeOf(n.Free, n.Units),
			pairs(n.MemoryMiB), perCard(n.PerCard))
	}
	t.Write(p)
}

func writePools(p *Page, list []landing.Pool) {
	t := newTable("POOL", "NODES", "MIN", "MAX", "KIND", "PRODUCT", "CARDS", "PRICE", "SPOT", "FREE/UNITS",
		"PROVIDER*", "ISOLATION*", "TAINTS*")
	for _, pool := range list {
		least, most := boundsOf(pool.Ceiling)
		t.Add(pool.Name, pool.Nodes, least, most, pool.Kind, known(pool.Product),
			known(pool.Cards), known(pool.Price), yesOrNo[pool.Spot], freeOf(pool.Free, pool.Units), pool.Provider,
			pool.Isolation, strings.Join(pool.Taints, ","))
	}
	t.WriteApart(p)
}

// freeOf writes for each resource how many units are free, out of how many: nvidia.com/mig-1g.5gb 3/8, or -/8 if
// unknown.
func freeOf(free, units map[string]int64) string {
	var parts []string
	for _, resource := range slices.Sorted(maps.Keys(units)) {
		left := "-"
		if n, known := free[resource]; known {
			left = fmt.Sprint(n)
		}
		parts = append(parts, fmt.Sprintf("%s %s/%d", resource, left, units[resource]))
	}
	return strings.Join(parts, ", ")
}

// perCard returns what is free on each card, in MiB, or in units (1u) if memory is unknown.
func perCard(cards []sharing.Card) string {
	parts := make([]string, 0, len(cards))
	for _, card := range cards {
		switch {
		case card.FreeMiB != nil:
			parts = append(parts, fmt.Sprintf("%dMiB", *card.FreeMiB))
		case card.FreeUnits != nil:
			parts = append(parts, fmt.Sprintf("%du", *card.FreeUnits))
		default:
			parts = append(parts, "?")
		}
	}
	return strings.Join(parts, ",")
}

// boundsOf returns a pool's minimum and maximum of nodes; limits on resources follow the maximum.
func boundsOf(ceiling *landing.Ceiling) (least any, most string) {
	if ceiling == nil {
		return "", ""
	}
	var parts []string
	if ceiling.MaxNodes != nil {
		parts = append(parts, fmt.Sprint(*ceiling.MaxNodes))
	}
	for _, resource := range slices.Sorted(maps.Keys(ceiling.Limits)) {
		parts = append(parts, resource+"="+ceiling.Limits[resource].String())
	}
	return known(ceiling.MinNodes), strings.Join(parts, ",")
}

// writeProblems lists the problems of nodes, and the flag that declares an unknown resource.
func writeProblems(p *Page, nodes []sharing.GPUs) {
	titled, unknown := false, false
	for _, n := range nodes {
		for _, problem := range n.Problems {
			if !titled {
				p.Line("", "")
				p.Line("", "PROBLEMS")
			}
			p.Line("", n.Name+": "+problem.String())
			titled, unknown = true, unknown || problem.Code == sharing.ResourceNotKnown
		}
	}
	if unknown {
		p.Line("", "--resource NAME=KIND declares an unknown resource; KIND is "+
			strings.Join(cli.ConfigurableKinds(), ", "))
	}
}

func pairs(values map[string]int64) string {
	parts := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, fmt.Sprintf("%s=%d", name, values[name]))
	}
	return strings.Join(parts, ",")
}
