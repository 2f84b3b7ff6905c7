package scenario

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Format writes a scenario, with its outcome as the last section. Parse reads the same snapshot from it.
func Format(name string, s *model.Snapshot, outcome []string) string {
	lines := []string{"scenario  " + name}
	for _, each := range []struct {
		name    string
		entries []string
	}{
		{sectionCluster, nonEmpty(clusterText(s))},
		{sectionPolicy, nonEmpty(policyText(s.Policy))},
		{sectionGroups, groupTexts(s.Groups)},
		{sectionHead, headText(s)},
		{sectionNodes, nodeTexts(s)},
		{sectionDemand, demandTexts(s)},
		{sectionWarm, warmTexts(s)},
		{sectionWant, outcome},
	} {
		lines = append(lines, section(each.name, each.entries)...)
	}
	return strings.Join(lines, "\n") + "\n"
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

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
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

func clusterText(s *model.Snapshot) string {
	var w words
	w.when(s.Name != "", "name", quote(s.Name))
	w.when(!s.TakenAt.IsZero(), "taken", momentText(s.TakenAt))
	if s.MaxWorkers != nil {
		w.add("max-workers", strconv.Itoa(*s.MaxWorkers))
	}
	w.when(s.UpscalingMode != "", "mode", s.UpscalingMode)
	if s.IdleTimeoutSeconds != nil {
		w.add("idle-timeout", secondsText(*s.IdleTimeoutSeconds))
	}
	w.when(s.LaunchConfigCheckDisabled, "ignore-launch-config")
	w.when(s.Isolation != "", "isolation", string(s.Isolation))
	return w.String()
}

func policyText(p model.Policy) string {
	var w words
	w.when(p.MaxInFlight != 0, "max-in-flight", strconv.Itoa(p.MaxInFlight))
	w.when(p.Work != 0, "work", strconv.FormatInt(p.Work, 10))
	return w.String()
}

func groupTexts(groups []model.Group) []string {
	var texts []string
	longest := 0
	for i := range groups {
		longest = max(longest, utf8.RuneCountInString(quote(groups[i].Name)))
	}
	for i := range groups {
		texts = append(texts, groupText(&groups[i], longest))
	}
	return texts
}

func groupText(g *model.Group, longest int) string {
	limits := strconv.Itoa(g.Min) + ".."
	if g.Max != math.MaxInt32 {
		limits += strconv.Itoa(g.Max)
	}
	w := words{fmt.Sprintf("%-*s", longest, quote(g.Name)), bundleText(g.Resources), limits}
	if g.Replicas != nil {
		w.add("replicas", strconv.Itoa(*g.Replicas))
	}
	w.when(g.NumOfHosts != 1, "hosts", strconv.Itoa(g.NumOfHosts))
	w.when(len(g.Labels) > 0, "labels", mapText(g.Labels))
	for _, each := range []struct {
		name  string
		value *float64
		write func(float64) string
	}{
		{"idle-timeout", g.IdleTimeoutSeconds, secondsText}, {"price", g.Price, numberText},
		{"availability", g.CloudAvailability, numberText}, {"recoverable", g.RecoverableScore, numberText},
	} {
		if each.value != nil {
			w.add(each.name, each.write(*each.value))
		}
	}
	w.when(g.Priority != 0, "priority", strconv.Itoa(g.Priority))
	w.when(g.LaunchConfigHash != "", "launch-config", quote(g.LaunchConfigHash))
	w.when(g.Closed != "", "closed", strconv.Quote(g.Closed))
	if fit := g.NodeFit; fit != nil {
		w.add(string(fit.Verdict), strconv.Quote(fit.Why))
	}
	w.when(g.CoolingSeconds != 0, "cooling", secondsText(g.CoolingSeconds))
	w.when(g.NodesComing != 0, "nodes-coming", strconv.Itoa(g.NodesComing))
	if g.Slice != nil {
		w.add("gpu", sliceText(g.Slice))
	}
	for i := range g.Pools {
		w.add("pool", poolText(&g.Pools[i]))
	}
	for i := range g.Announces {
		w.add("announces", announcedText(&g.Announces[i]))
	}
	return w.String()
}

func sliceText(s *model.Slice) string {
	var w words
	w.when(s.Kind != "", "kind: "+quote(string(s.Kind)))
	w.when(s.Profile != "", "profile: "+quote(s.Profile))
	if s.MemoryMiB != nil {
		w.add(fmt.Sprintf("memory: %dMi", *s.MemoryMiB))
	}
	if s.ComputeFraction != nil {
		w.add("compute: " + fractionText(*s.ComputeFraction))
	}
	w.when(s.Isolation != "", "isolation: "+quote(string(s.Isolation)))
	w.when(s.Product != "", "product: "+quote(s.Product))
	if s.Blocks != nil {
		w.add(fmt.Sprintf("blocks: %d", *s.Blocks))
	}
	return braces(w)
}

func poolText(p *landing.GroupPool) string {
	var w words
	if p.MaxPods != nil {
		w.add(fmt.Sprintf("pods: %d", *p.MaxPods))
	}
	w.when(p.Resource != "", "resource: "+quote(p.Resource))
	w.when(p.Units != 0, fmt.Sprintf("units: %d", p.Units))
	w.when(p.ProfileFixed, "profile-fixed: yes")
	var shares words
	for _, s := range p.Shares {
		shares.add(fmt.Sprintf("%s: %d/%d", quote(s.Resource), s.Units, s.Capacity))
	}
	w.when(len(shares) > 0, "shares: "+braces(shares))
	var cards words
	for i := range p.Cards {
		cards.add(cardsText(&p.Cards[i]))
	}
	w.when(len(cards) > 0, "cards: ["+strings.Join(cards, ", ")+"]")
	return quote(p.Name) + " " + braces(w)
}

func cardsText(c *sharing.CutCards) string {
	w := words{"product: " + quote(c.Product), fmt.Sprintf("count: %d", c.Count)}
	if c.Busy != nil {
		w.add(fmt.Sprintf("busy: %d", *c.Busy))
	}
	var cut words
	for _, each := range c.Cut {
		cut.add(fmt.Sprintf("%s: %d", quote(each.Profile), each.Count))
	}
	w.when(len(cut) > 0, "cut: "+braces(cut))
	return braces(w)
}

func headText(s *model.Snapshot) []string {
	if s.Head == nil {
		return nil
	}
	var w words
	w.when(s.Head.Pod != "", "pod", quote(s.Head.Pod))
	w.when(s.Head.Group != headGroup, "group", quote(s.Head.Group))
	text := nodeText(s, s.Head)
	if len(w) > 0 {
		text += " " + w.String()
	}
	return []string{text}
}

func nodeTexts(s *model.Snapshot) []string {
	var texts []string
	pods, groups := 0, 0
	for i := range s.Nodes {
		pods = max(pods, utf8.RuneCountInString(quote(s.Nodes[i].Pod)))
		groups = max(groups, utf8.RuneCountInString(quote(s.Nodes[i].Group)))
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		texts = append(texts, fmt.Sprintf("%-*s  %-*s  %s", pods, quote(n.Pod), groups, quote(n.Group), nodeText(s, n)))
	}
	return texts
}

// nodeText writes a node from its state on, without what follows from its group.
func nodeText(s *model.Snapshot, n *model.Node) string {
	var w words
	for name, state := range nodeStates {
		w.when(state == n.State, name)
	}
	group := groupNamed(s, n.Group)
	total, labels := fromGroup(*n, group)
	unsaid := joined(n.State) && group == nil && n.Resources == nil
	w.when(n.Total != nil && (unsaid || !same(n.Total, total)), bundleText(n.Total))
	w.when(n.Total == nil && (unsaid || total != nil), "unreported")
	free := raydemand.Bundle(nil)
	if joined(n.State) {
		free = n.Total
	}
	w.when(n.Available != nil && !same(n.Available, free), "free", bundleText(n.Available))
	w.when(n.Available == nil && free != nil, "free", "unknown")
	w.when(n.IdleSeconds != 0, "for", secondsText(n.IdleSeconds))
	w.when(!maps.Equal(n.Labels, labels), "labels", mapText(n.Labels))
	w.when(len(n.PlacedLabels) > 0, "placed", mapText(n.PlacedLabels))
	w.when(n.Resources != nil, "resources", bundleText(n.Resources))
	w.when(len(n.Refused) > 0, "refused", bundleText(n.Refused))
	for _, text := range n.Activity {
		w.add("activity " + quote(text))
	}
	w.when(n.KubeNode != "", "on", quote(n.KubeNode))
	w.when(n.Guard != "", "guarded-by", quote(n.Guard))
	w.when(!n.Since.IsZero(), "since", momentText(n.Since))
	w.departure(n.Going)
	w.arrival(n.Arrival)
	w.when(n.Replica != "", "replica", quote(n.Replica))
	w.when(n.Expected, "expected")
	w.when(n.IMState != "", "im-state", quote(n.IMState))
	w.when(n.LaunchConfigHash != "", "launch-config", quote(n.LaunchConfigHash))
	w.when(n.GroupLaunchConfigHash != "", "group-launch-config", quote(n.GroupLaunchConfigHash))
	return w.String()
}

// same is exact: nil resources are unknown, empty ones are none.
func same(a, b raydemand.Bundle) bool { return (a == nil) == (b == nil) && maps.Equal(a, b) }

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

func mapText(m map[string]string) string {
	var w words
	for _, name := range sortedKeys(m) {
		w.add(quote(name) + ": " + quote(m[name]))
	}
	return braces(w)
}

func braces(parts words) string { return "{" + strings.Join(parts, ", ") + "}" }

func numberText(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// fractionText writes sevenths as fractions, because MIG divides the compute of a card into sevenths.
func fractionText(f float64) string {
	for n := 1; n < 7; n++ {
		if f == float64(n)/7 {
			return strconv.Itoa(n) + "/7"
		}
	}
	return numberText(f)
}

func secondsText(f float64) string { return numberText(f) + "s" }

func momentText(t time.Time) string { return t.Format(time.RFC3339Nano) }
