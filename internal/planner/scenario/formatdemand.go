package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func demandTexts(s *model.Snapshot) []string {
	var texts []string
	for i := range s.Requests {
		texts = append(texts, requestText(&s.Requests[i]))
	}
	for i := range s.Gangs {
		texts = append(texts, gangText(&s.Gangs[i]))
	}
	for i := range s.Constraint {
		texts = append(texts, "request_resources "+requestText(&s.Constraint[i]))
	}
	for i := range s.KeptResources {
		texts = append(texts, "keep "+requestText(&s.KeptResources[i]))
	}
	for i := range s.OwnedRequests {
		texts = append(texts, ownedText(&s.OwnedRequests[i]))
	}
	return texts
}

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

func ownedText(o *raydemand.Owned) string {
	w := words{"owned", quote(o.ID)}
	w.when(o.Owner != "", "by", quote(o.Owner))
	w.when(o.Priority != 0, "priority", strconv.Itoa(int(o.Priority)))
	w.when(!o.Since.IsZero(), "since", momentText(o.Since))
	w.when(!o.SatisfiedSince.IsZero(), "satisfied", momentText(o.SatisfiedSince))
	w.when(o.AllOrNothing, "all-or-nothing")
	var requests []string
	for i := range o.Requests {
		requests = append(requests, requestText(&o.Requests[i]))
	}
	w.when(len(requests) > 0, strings.Join(requests, " + "))
	w.when(len(requests) == 0, nothing)
	return w.String()
}
