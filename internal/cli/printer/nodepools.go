package printer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	if len(report.Pools) > 0 {
		p.Line("", "")
		writePools(p, report.Pools)
	}
	writeProblems(p, report.Nodes)
	for _, note := range report.Notes {
		p.Line("", "")
		p.Line("", "Note: "+note)
	}
}

func writeNodes(p *Page, nodes []sharing.GPUs) {
	t := newTable(p, "@NODE", "@POOL", "KIND", "PRODUCT", "#CARDS", "ISOLATION", "~FREE/UNITS",
		"MIB PER UNIT*", "FREE PER CARD*")
	for _, n := range nodes {
		t.Add(n.Name, orDash(n.Pool), n.Kind, productOf(p.Look, n.Product), count(n.Cards), n.Isolation,
			freeOf(p.Look, n.Free, n.Units), amounts(n.MemoryMiB), perCard(n.PerCard))
	}
	t.Write(p)
}

func writePools(p *Page, list []landing.Pool) {
	karpenter := slices.ContainsFunc(list, func(p landing.Pool) bool { return p.NodeClaims != nil })
	t := newTable(p, "@POOL", "#NODES", "#MIN", "#MAX", "KIND", "PRODUCT", "#CARDS", "#PRICE", "SPOT",
		"~FREE/UNITS", "PROVIDER*", "ISOLATION*", "TAINTS*")
	if karpenter {
		t.Columns = slices.Insert(t.Columns, 2, columnOf("COMING"))
	}
	for _, pool := range list {
		least, most := boundsOf(p.Look, pool.Ceiling)
		row := []any{pool.Name, pool.Nodes, least, most, pool.Kind, productOf(p.Look, pool.Product), count(pool.Cards),
			nodePrice(pool.Price), map[bool]string{true: "yes", false: "no"}[pool.Spot],
			freeOf(p.Look, pool.Free, pool.Units), pool.Provider, pool.Isolation,
			orNone(strings.Join(pool.Taints, ","))}
		if karpenter {
			row = slices.Insert(row, 2, any(comingOf(pool.NodeClaims)))
		}
		t.Add(row...)
	}
	t.Write(p)
}

// comingOf returns the number of launched NodeClaims of a pool and, after +, those that may still fail.
func comingOf(claims *landing.ClaimCount) string {
	switch {
	case claims == nil:
		return unknownCell
	case claims.Requested > 0:
		return fmt.Sprintf("%d+%d", claims.Launched, claims.Requested)
	}
	return strconv.Itoa(claims.Launched)
}

// productOf returns a model's name, without the vendor's unless the table is wide: the longest names would not fit
// otherwise.
func productOf(l Look, product *string) string {
	if product == nil || l.Wide {
		return orDash(product)
	}
	return strings.TrimPrefix(*product, "NVIDIA-")
}

// freeOf writes for each resource how many units are free, out of how many: mig-1g.5gb 3/8, or -/8 if unknown.
func freeOf(l Look, free, units map[string]int64) string {
	names := slices.Sorted(maps.Keys(units))
	shown := shortResources(l, names)
	parts := make([]string, len(names))
	for i, resource := range names {
		left := unknownCell
		if n, known := free[resource]; known {
			left = strconv.FormatInt(n, 10)
		}
		parts[i] = fmt.Sprintf("%s %s/%d", shown[i], left, units[resource])
	}
	return orNone(strings.Join(parts, ", "))
}

// shortResources returns the names without their domains, unless two would be equal or the table is wide.
func shortResources(l Look, names []string) []string {
	short := make([]string, len(names))
	for i, resource := range names {
		short[i] = resource[strings.LastIndex(resource, "/")+1:]
	}
	if l.Wide || len(slices.Compact(slices.Sorted(slices.Values(short)))) < len(names) {
		return names
	}
	return short
}

// perCard returns what is free on each card, in MiB, or in units (1u) if memory is unknown.
func perCard(cards []sharing.Card) string {
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

// boundsOf returns a pool's minimum and maximum of nodes; limits on resources follow the maximum.
func boundsOf(l Look, ceiling *landing.Ceiling) (least, most string) {
	if ceiling == nil {
		return unknownCell, unknownCell
	}
	var parts []string
	if ceiling.MaxNodes != nil {
		parts = append(parts, count(ceiling.MaxNodes))
	}
	names := slices.Sorted(maps.Keys(ceiling.Limits))
	for i, shown := range shortResources(l, names) {
		parts = append(parts, shown+"="+ceiling.Limits[names[i]].String())
	}
	return count(ceiling.MinNodes), orNone(strings.Join(parts, ","))
}

func nodePrice(value *float64) string {
	if value == nil {
		return unknownCell
	}
	return strconv.FormatFloat(*value, 'f', -1, 64)
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
