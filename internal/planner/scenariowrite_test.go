package planner_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Outcome writes the decisions of a plan, with codes and sentences: one line for each group's reason, each pod to stop,
// each unserved demand, each owned request, each entry of warm capacity and each finding.
func Outcome(p *model.Plan) []string {
	var lines []string
	for i := range p.Groups {
		lines = append(lines, groupOutcome(&p.Groups[i])...)
	}
	for _, t := range p.Terminate {
		line := fmt.Sprintf("stop %s of %s %s", quote(t.Pod), quote(t.Group), t.Reason)
		if t.Busy {
			line += " busy"
		}
		lines = append(lines, with(line, t.Message))
	}
	unmet := func(kind string, requests []model.UnmetRequest) {
		for i := range requests {
			u := &requests[i]
			line := kind + requestText(&u.Request)
			if u.AskedBy != "" {
				line += " of " + u.AskedBy
			}
			lines = append(lines, with(line+" "+u.Reason.Code, u.Reason.Message))
		}
	}
	unmet("unmet ", p.InfeasibleRequests)
	for i := range p.InfeasibleGangRequests {
		u := &p.InfeasibleGangRequests[i]
		lines = append(lines, with("unmet "+gangText(&u.Gang)+" "+u.Reason.Code, u.Reason.Message))
	}
	unmet("unmet request_resources ", p.InfeasibleRequestResources)
	for i := range p.Requests {
		lines = append(lines, requestOutcome(&p.Requests[i]))
	}
	for i := range p.Warm {
		lines = append(lines, warmOutcome(&p.Warm[i]))
	}
	for _, f := range p.Findings {
		lines = append(lines, with("finding "+f.Code, strings.TrimSpace(f.Object+" "+f.Field)))
	}
	if p.Price != nil {
		lines = append(lines, fmt.Sprintf("price %.6g", *p.Price))
	}
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return lines
}

// groupOutcome writes the group's size next to its first reason.
func groupOutcome(g *model.GroupPlan) []string {
	size := fmt.Sprintf("%s stays %d", quote(g.Name), g.Current)
	if g.Current != g.Desired {
		size = fmt.Sprintf("%s %d → %d", quote(g.Name), g.Current, g.Desired)
	}
	if g.Held > 0 {
		size += fmt.Sprintf(" held %d", g.Held)
	}
	if g.BelowMin > 0 {
		size += fmt.Sprintf(" below-min %d", g.BelowMin)
	}
	if len(g.Reasons) == 0 {
		return []string{size}
	}
	var lines []string
	for i, r := range g.Reasons {
		if i > 0 {
			size = quote(g.Name)
		}
		lines = append(lines, with(size+" "+r.Code, r.Message))
	}
	return lines
}

func requestOutcome(r *model.RequestPlan) string {
	name := "owned " + quote(r.ID)
	if r.Plain {
		name = "keep"
	}
	line := fmt.Sprintf("%s %s, %d asked, %d served, %d waiting, %s",
		name, r.State, r.Asked, r.Served, r.Waiting, r.Reason.Code)
	return with(line, r.Reason.Message)
}

func with(line, message string) string {
	if message == "" {
		return line
	}
	return line + ": " + message
}

const (
	indent = 10  // the column where entries start, counted from 0
	width  = 120 // the longest line, unless a single word is longer
)

// section writes entries below one another, the first one next to the section's name.
func section(name string, entries []string) []string {
	var lines []string
	for i, e := range entries {
		head := strings.Repeat(" ", indent)
		if i == 0 {
			head = fmt.Sprintf("%-*s", indent, name)
		}
		lines = append(lines, wrap(head, e)...)
	}
	return lines
}

// wrap breaks an entry at spaces. Lines after the first start two columns further right, which continues the entry.
func wrap(head, text string) []string {
	var lines []string
	line := head
	for i, piece := range pieces(text) {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(piece) > width {
			lines, line = append(lines, line), strings.Repeat(" ", indent+2)+piece
			continue
		}
		if i > 0 {
			line += " "
		}
		line += piece
	}
	return append(lines, line)
}

// pieces splits a text where a line may break: at single spaces outside of short braces, because a line break stands
// for one space. A piece never starts like a comment.
func pieces(text string) []string {
	var all []string
	from := 0
	for i := 1; i+1 < len(text); i++ {
		if text[i] == '{' {
			i += shortBraces(text[i:])
		}
		if i+1 < len(text) && text[i] == ' ' && text[i-1] != ' ' && text[i+1] != ' ' && text[i+1] != '#' {
			all, from = append(all, text[from:i]), i+1
		}
	}
	return append(all, text[from:])
}

// shortBraces returns the distance from the { at the start of text to its }, or 0 if that is too far for one line.
func shortBraces(text string) int {
	const most = 70
	depth := 0
	for i := range min(len(text), most) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 0 {
			return i
		}
	}
	return 0
}

// words collects the parts of an entry.
type words []string

func (w *words) add(parts ...string) { *w = append(*w, parts...) }

// when adds the parts if the condition holds.
func (w *words) when(holds bool, parts ...string) {
	if holds {
		w.add(parts...)
	}
}

func (w *words) String() string { return strings.Join(*w, " ") }

func bundleText(b raydemand.Bundle) string {
	var w words
	for _, name := range sortedKeys(b) {
		w.add(quote(name) + ": " + amountText(name, b[name]))
	}
	return braces(w)
}

// amountText writes memory with a unit if it is a whole number of units.
func amountText(name string, a raydemand.Amount) string {
	if strings.Contains(name, "memory") {
		for _, u := range memoryUnits {
			if unit := raydemand.Whole(u.bytes); a >= unit && a%unit == 0 {
				return strconv.FormatInt(int64(a/unit), 10) + u.suffix
			}
		}
	}
	return a.String()
}

func braces(parts words) string { return "{" + strings.Join(parts, ", ") + "}" }

func numberText(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func requestText(q *raydemand.Request) string {
	w := words{fmt.Sprintf("%d × %s", q.Count, bundleText(q.Bundle))}
	if q.Slice != nil {
		w.add("each", requirementText(q.Slice))
	}
	for i, s := range q.Selectors {
		joint := "or"
		if i == 0 {
			joint = "on"
		}
		w.add(joint, selectorText(s))
	}
	return w.String()
}

func requirementText(s *raydemand.SliceRequirement) string {
	var w words
	w.when(s.Memory != 0, "memory: "+amountText("memory", raydemand.Whole(s.Memory)))
	w.when(s.ComputeFraction != 0, "compute: "+numberText(s.ComputeFraction))
	w.when(s.Isolation != "", "isolation: "+quote(s.Isolation))
	return braces(w)
}

func selectorText(s raydemand.Selector) string {
	var w words
	for _, c := range s {
		w.add(quote(c.Key) + ": " + quote(c.Expression()))
	}
	return braces(w)
}

func gangText(g *raydemand.Gang) string {
	w := words{"gang"}
	w.when(g.ID != "", "id", quote(g.ID))
	w.add(string(g.Strategy))
	w.when(g.TopologyLabel != "", "topology", quote(g.TopologyLabel))
	w.add(bundlesText(g.Bundles, g.BundleSelectors))
	for i, alternative := range g.Fallbacks {
		w.add("or", bundlesText(alternative, g.SelectorsOf(i)))
	}
	return w.String()
}

// bundlesText counts equal neighbors. If all selectors are empty, it writes them to show that they exist.
func bundlesText(bundles []raydemand.Bundle, selectors []raydemand.Selector) string {
	asks := slices.ContainsFunc(selectors, func(s raydemand.Selector) bool { return len(s) > 0 })
	var parts []string
	for i := 0; i < len(bundles); {
		n := i + 1
		for n < len(bundles) && maps.Equal(bundles[n], bundles[i]) && sameSelector(selectors, n, i) {
			n++
		}
		text := strconv.Itoa(n-i) + " × " + bundleText(bundles[i])
		if len(selectors) > 0 && (len(selectors[i]) > 0 || !asks) {
			text += " on " + selectorText(selectors[i])
		}
		parts, i = append(parts, text), n
	}
	return strings.Join(parts, " + ")
}

func sameSelector(selectors []raydemand.Selector, a, b int) bool {
	return len(selectors) == 0 || selectors[a].String() == selectors[b].String()
}

func warmOutcome(p *model.WarmPlan) string {
	line := fmt.Sprintf("warm %s %d ready", quote(p.Name), p.Ready)
	if p.Coming > 0 {
		line += fmt.Sprintf(", %d coming", p.Coming)
	}
	if p.Launching > 0 {
		line += fmt.Sprintf(", %d launching", p.Launching)
	}
	if missing := max(0, p.Count-p.Ready-p.Coming-p.Launching); missing > 0 {
		line += fmt.Sprintf(", %d missing", missing)
	}
	for _, pod := range p.Kept {
		line += " keeps " + quote(pod)
	}
	return with(line+" "+p.Reason.Code, p.Reason.Message)
}
