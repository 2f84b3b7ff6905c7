package reasons

import (
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/search"
)

// namedPurposes is how many kinds of demand a sentence names before it counts the rest. namedGangs is the same for
// equal gangs.
const (
	namedPurposes = 3
	namedGangs    = 2
)

// purpose is one kind of demand that pods are launched for. Equal gangs count together.
type purpose struct {
	bundles int64
	what    string
	of      string // empty for gangs and pending requests
	gangs   []*fleet.Gang
}

// purposes lists what a group's pods are launched for.
func (w *Writer) purposes(i int, given int64, out *search.Outcome) string {
	var parts []string
	g := &w.Groups[i]
	if short := g.MinPods - g.Remaining(); short > 0 {
		parts = append(parts, fmt.Sprintf("the minimum of %d", g.MinPods))
	}
	switch n := out.WarmLaunched(i); {
	case n == given:
		parts = append(parts, "warm capacity")
	case n > 0:
		parts = append(parts, fmt.Sprintf("warm capacity (%s)", phrase.Pods(n)))
	}
	for _, kind := range w.purposesOf(i, out) {
		parts = append(parts, kind.String())
	}
	switch more := len(parts) - namedPurposes; {
	case more == 1:
		parts = append(parts[:namedPurposes], "1 more kind of demand")
	case more > 1:
		parts = append(parts[:namedPurposes], fmt.Sprintf("%d more kinds of demand", more))
	}
	text := "for " + strings.Join(parts, ", ")
	if len(parts) == 0 {
		text = "to find out whether a node comes for it" // a gang needs more than one
	}
	if g.Hosts > 1 {
		text += fmt.Sprintf(" (%d hosts per replica)", g.Hosts)
	}
	return text
}

// purposesOf lists what pods of a group are launched for, in the order of planning.
func (w *Writer) purposesOf(i int, out *search.Outcome) []*purpose {
	type kind struct{ of, gangs, what string }
	type member struct {
		kind *purpose
		gang *fleet.Gang
	}
	known, counted := map[kind]*purpose{}, map[member]bool{}
	asking := w.claimants(out)
	var all []*purpose
	for _, e := range out.Log {
		if e.Group != i {
			continue
		}
		owner, ofGang := w.Owner(e.Item)
		k := kind{of: e.Purpose, what: phrase.Describe(e.Item.Asked()) + partOfSlice(&w.Groups[i], e.Item)}
		if ofGang {
			k.gangs = owner.Gang.Key
		}
		if known[k] == nil {
			known[k] = &purpose{what: k.what, of: asking.purpose(e.Purpose, e.Item)}
			all = append(all, known[k])
		}
		known[k].bundles += e.Count
		if of := (member{known[k], owner.Gang}); ofGang && !counted[of] {
			counted[of] = true
			known[k].gangs = append(known[k].gangs, owner.Gang)
		}
	}
	for _, kind := range all {
		slices.SortFunc(kind.gangs, func(a, b *fleet.Gang) int { return a.Number - b.Number })
	}
	return all
}

// String returns, for example, gangs 3f and 40: 6 × {GPU 1}.
func (k *purpose) String() string {
	text := fmt.Sprintf("%d × %s", k.bundles, k.what)
	if len(k.gangs) == 0 {
		return strings.TrimSpace(k.of + " " + text)
	}
	var ids []string
	for _, g := range k.gangs {
		if g.ID != "" {
			ids = append(ids, g.ID)
		}
	}
	n := len(k.gangs)
	switch {
	case n == 1 && len(ids) == 1:
		return "gang " + ids[0] + ": " + text
	case n == 1:
		return "gang " + text
	case len(ids) < n:
		return fmt.Sprintf("%d gangs: %s", n, text)
	case n == 2:
		return fmt.Sprintf("gangs %s and %s: %s", ids[0], ids[1], text)
	}
	return fmt.Sprintf("gangs %s and %d more: %s", strings.Join(ids[:namedGangs], ", "), n-namedGangs, text)
}
