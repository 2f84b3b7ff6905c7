package printer

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// WritePlanText writes the plan for people: demand, groups, decision, unmet demand and findings.
func WritePlanText(p *Page, plan planner.Plan) {
	writeDemand(p, plan.Summary, true)
	writeGroups(p, plan.Groups)
	writeDecision(p, plan)
	writeUnmet(p, apiv1.UnmetOf(plan), plan.Groups, true)
	writeFindings(p, plan.Findings)
}

// NonEmpty returns the texts that are not empty.
func NonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

func writeGroups(p *Page, groups []planner.GroupPlan) {
	p.Line("", "")
	p.Line("", "Groups")
	if len(groups) == 0 {
		p.Line("  ", "there are none")
	}
	for _, g := range groups {
		p.Line("  ",
			fmt.Sprintf("%s: %s, each %s", g.Name, g.Size(), planner.Describe(raydemand.Request{Bundle: g.Resources})))
		if g.Slice != nil {
			p.Line("    ", "one GPU is a "+g.Slice.String())
		}
		for _, r := range g.Reasons {
			p.Line("    ", r.Message)
		}
	}
}

func writeDecision(p *Page, plan planner.Plan) {
	p.Line("", "")
	p.Line("", "Decision")
	for _, group := range slices.Sorted(maps.Keys(plan.Launch)) {
		p.Line("  ", fmt.Sprintf("launch %d × %s", plan.Launch[group], group))
	}
	writeStops(p, plan.Terminate)
	if plan.Price != nil {
		p.Line("  ", "price of what is launched: "+price(*plan.Price)+" an hour")
	}
	if len(plan.Launch)+len(plan.Terminate) == 0 {
		p.Line("  ", "nothing to do")
	}
}

// mostStops is how many pods of one group that stop for one reason are listed one by one.
const mostStops = 5

// writeStops lists the pods to stop; of many with the same reason, it names the first.
func writeStops(p *Page, all []planner.Termination) {
	alike := func(t planner.Termination) planner.Termination {
		return planner.Termination{Group: t.Group, Reason: t.Reason, Busy: t.Busy}
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b planner.Termination) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Reason, b.Reason))
	})
	pods := map[planner.Termination][]string{}
	for _, t := range all {
		pods[alike(t)] = append(pods[alike(t)], t.Pod)
	}
	for _, t := range all {
		who, why := pods[alike(t)], t.Message
		switch {
		case len(who) <= mostStops:
			p.Line("  ", fmt.Sprintf("stop %s of %s (%s): %s%s", t.Pod, t.Group, t.Reason, why, t.Parting()))
		case who[0] == t.Pod:
			p.Line("  ", fmt.Sprintf("stop %d × %s (%s): %s and %d more; %s: %s%s", len(who), t.Group, t.Reason,
				strings.Join(who[:mostStops], ", "), len(who)-mostStops, t.Pod, why, t.Parting()))
		}
	}
}

// price formats a sum of prices without the rounding error of binary addition.
func price(sum float64) string {
	const micro = 1e6
	if rounded := math.Round(sum*micro) / micro; rounded > 0 && !math.IsInf(rounded, 0) {
		sum = rounded
	}
	return strconv.FormatFloat(sum, 'f', -1, 64)
}

// writeMinimums lists the groups that a limit keeps below their minimum, and counts them.
func writeMinimums(p *Page, groups []planner.GroupPlan) (short int) {
	for _, g := range groups {
		if g.BelowMin > 0 {
			short++
			p.Line("  ", fmt.Sprintf("minimum of group %s: %d of %d missing", g.Name, g.BelowMin, g.Min))
		}
	}
	return short
}

// writeFindings lists findings with their codes, as in docs/reference/reasons.md, in alerts and in `doctor`.
func writeFindings(p *Page, findings []raydemand.Finding) {
	if len(findings) == 0 {
		return
	}
	p.Line("", "")
	p.Line("", "Findings")
	for _, f := range findings {
		p.Line("  ", fmt.Sprintf("%-7s  %s", f.Severity, f.Code))
		for _, text := range []string{f.Object, strings.Join(NonEmpty(f.Field, f.Seen), ": "), f.Why, f.Fix} {
			if text != "" {
				p.Line("           ", text)
			}
		}
	}
}

// DescribeFinding writes object, field, value, effect and fix, in this order.
func DescribeFinding(f raydemand.Finding) string {
	return strings.Join(NonEmpty(f.Object, f.Field, f.Seen, strings.Join(NonEmpty(f.Why, f.Fix), "; ")), ": ")
}
