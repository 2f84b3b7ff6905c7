package printer

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/planner"
)

// WriteCosts writes a row for each RayCluster, group or owner with columns for the causes, or a row for each cause, and
// then what is idle now.
func WriteCosts(p *Page, c apiv1.Costs) {
	if len(c.Items) == 0 {
		p.Line("", "No costs since "+Moment(c.Since)+": nothing has been added up.")
		return
	}
	if c.By == apiv1.CostsByCause {
		writeByCause(p, c)
	} else {
		writeBySubject(p, c)
	}
	writeCostNotes(p, c)
}

// costSum is what one row adds up.
type costSum struct {
	gpuSeconds, cost float64
	by               map[string]float64
}

func (s *costSum) add(item apiv1.CostItem) {
	if s.by == nil {
		s.by = map[string]float64{}
	}
	s.gpuSeconds += item.GpuSeconds
	s.cost += item.Cost
	s.by[item.Cause] += item.Cost
}

// writeBySubject writes a row for each subject, the most expensive first.
func writeBySubject(p *Page, c apiv1.Costs) {
	shown := shownCauses(c.Items)
	columns := []string{"@RAYCLUSTER"}
	switch c.By {
	case apiv1.CostsByGroup:
		columns = append(columns, "@GROUP")
	case apiv1.CostsByOwner:
		columns = []string{"@NAMESPACE", "@OWNER"}
	}
	columns = append(columns, "#GPU-HOURS", "#COST "+c.Currency)
	for _, cause := range shown {
		columns = append(columns, "#"+strings.ToUpper(cause))
	}
	type row struct {
		names []string
		costSum
	}
	var rows []row
	for _, item := range c.Items { // sorted by subject
		names := []string{item.Namespace + "/" + item.Cluster}
		switch c.By {
		case apiv1.CostsByGroup:
			names = append(names, item.Group)
		case apiv1.CostsByOwner:
			names = []string{item.Namespace, item.Owner}
		}
		if n := len(rows); n == 0 || !slices.Equal(rows[n-1].names, names) {
			rows = append(rows, row{names: names})
		}
		rows[len(rows)-1].add(item)
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.cost, a.cost), cmp.Compare(b.gpuSeconds, a.gpuSeconds))
	})
	t := newTable(p, columns...)
	for _, r := range rows {
		var cells []any
		for _, name := range r.names {
			cells = append(cells, name)
		}
		cells = append(cells, hoursOf(r.gpuSeconds), money(r.cost))
		for _, cause := range shown {
			cells = append(cells, money(r.by[cause]))
		}
		t.Add(cells...)
	}
	t.Write(p)
}

// shownCauses returns the causes that occur, in their order.
func shownCauses(items []apiv1.CostItem) (shown []string) {
	for _, cause := range ledger.Causes() {
		if slices.ContainsFunc(items, func(item apiv1.CostItem) bool { return item.Cause == string(cause) }) {
			shown = append(shown, string(cause))
		}
	}
	return shown
}

// writeByCause writes a row for each cause and its code.
func writeByCause(p *Page, c apiv1.Costs) {
	t := newTable(p, "CAUSE", "WHY", "#POD-HOURS", "#GPU-HOURS", "#COST "+c.Currency)
	for _, cause := range shownCauses(c.Items) {
		for _, item := range c.Items {
			if item.Cause == cause {
				t.Add(cause, orNone(item.Why), hoursOf(item.PodSeconds), hoursOf(item.GpuSeconds), money(item.Cost))
			}
		}
	}
	t.Write(p)
}

func hoursOf(seconds float64) string { return strconv.FormatFloat(seconds/3600, 'f', 1, 64) }

// number formats a number with all its decimals.
func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func money(amount float64) string { return strconv.FormatFloat(amount, 'f', 2, 64) }

// writeCostNotes writes the sum, what the answer lacks, and what is idle now.
func writeCostNotes(p *Page, c apiv1.Costs) {
	var sum costSum
	var pods, unpriced float64
	for _, item := range c.Items {
		sum.add(item)
		pods += item.PodSeconds
		unpriced += item.UnpricedPodSeconds
	}
	p.Line("", "")
	p.Line("", fmt.Sprintf("%s GPU-hours, %s %s in %s, since %s.", hoursOf(sum.gpuSeconds), money(sum.cost),
		c.Currency, planner.Span(c.Until.Sub(c.Since).Seconds()), Moment(c.Since)))
	if c.By != apiv1.CostsByCause {
		writeIdleCauses(p, c)
	}
	if pods > 0 && unpriced > 0 {
		p.Line("", fmt.Sprintf("%.0f %% of the pods' time has no price: see `--prices` in docs/reference/costs.md.",
			max(1, 100*unpriced/pods)))
	}
	for _, idle := range c.Idle {
		p.Line("", "")
		p.Line("", idle.Namespace+"/"+idle.Cluster+": "+idle.Message)
		if idle.Command != "" {
			p.Line("  ", idle.Command)
		}
	}
}

// writeIdleCauses writes what was idle, by the code that says why, the most expensive first.
func writeIdleCauses(p *Page, c apiv1.Costs) {
	var idle costSum
	by := map[string]*costSum{}
	for _, item := range c.Items {
		if item.Cause != string(ledger.Idle) {
			continue
		}
		if by[item.Why] == nil {
			by[item.Why] = &costSum{}
		}
		by[item.Why].add(item)
		idle.add(item)
	}
	if len(by) == 0 {
		return
	}
	codes := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(by[b].cost, by[a].cost), cmp.Compare(by[b].gpuSeconds, by[a].gpuSeconds),
			cmp.Compare(a, b))
	})
	for i, code := range codes {
		codes[i] = fmt.Sprintf("%s %s (%s GPU-hours)", orNone(code), money(by[code].cost), hoursOf(by[code].gpuSeconds))
	}
	p.Line("", fmt.Sprintf("%s %s of it was idle: %s.", money(idle.cost), c.Currency, strings.Join(codes, ", ")))
}

// WriteCostsCSV writes the items, with a header line, for spreadsheets.
func WriteCostsCSV(out io.Writer, c apiv1.Costs) error {
	w := csv.NewWriter(out)
	rows := [][]string{{"namespace", "cluster", "group", "owner", "cause", "why", "pod_seconds", "gpu_seconds",
		"cost", "currency", "unpriced_pod_seconds"}}
	for _, item := range c.Items {
		rows = append(rows, []string{item.Namespace, item.Cluster, item.Group, item.Owner, item.Cause,
			item.Why, number(item.PodSeconds), number(item.GpuSeconds), number(item.Cost), c.Currency,
			number(item.UnpricedPodSeconds)})
	}
	return w.WriteAll(rows)
}
