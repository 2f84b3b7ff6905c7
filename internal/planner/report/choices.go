package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/planner/fleet"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/internal/planner/vector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// choices explains each of a request's selectors, in order: pods are launched for it, or why no group serves it.
func (r *Reporter) choices(it *vector.Item, given []int64, out *search.Outcome) []model.Detail {
	if !it.HasChoices() {
		return nil
	}
	var details []model.Detail
	for i, selector := range it.Request.Selectors {
		labels := cmp.Or(selector.String(), "any node")
		details = append(
			details,
			model.Detail{About: phrase.Choice(i, it.Alternatives) + ", " + labels, Reason: r.choice(it, i, given, out)},
		)
	}
	return details
}

func (r *Reporter) choice(it *vector.Item, i int, given []int64, out *search.Outcome) model.Reason {
	var launched int64
	by := map[string]bool{}
	for _, e := range out.Log {
		if e.Item == it && it.Rank[r.Groups[e.Group].Shape.Labels] == i {
			launched += e.Count
			by[r.Groups[e.Group].Name] = true
		}
	}
	if launched > 0 {
		names := make([]string, 0, len(by))
		for name := range by {
			names = append(names, "group "+name)
		}
		slices.Sort(names)
		return model.Reason{
			Code:    model.CodeLaunch,
			Message: fmt.Sprintf("%d are placed on new pods of %s", launched, strings.Join(names, ", ")),
		}
	}
	alone := it.Request
	alone.Selectors = alone.Selectors[i : i+1]
	return r.obstacles(r.NewItem(alone, it.Need, ""), given)
}

// obstacles explains why no group serves an item. The code is that of the group that comes closest.
func (r *Reporter) obstacles(it *vector.Item, given []int64) model.Reason {
	code, least := model.CodeNotNeeded, len(r.Names)+2
	for i := range r.Groups {
		reason, stands := r.Obstacle(i, it, given)
		if !stands {
			return model.Reason{
				Code:    model.CodeNotNeeded,
				Message: "pods of group " + r.Groups[i].Name + " could serve it, but none is needed",
			}
		}
		if n := r.Misses(it, r.Groups[i].Shape); n < least {
			code, least = reason.Code, n
		}
	}
	return model.Reason{Code: code, Message: phrase.List(r.Considered([]*vector.Item{it}, given, ""))}
}

// mostElsewhere is how many gangs are listed one by one.
const mostElsewhere = 10

// elsewhere lists the gangs and the calls of request_resources that ask for the same bundle as a request.
func (r *Reporter) elsewhere(b raydemand.Bundle, given []int64, out *search.Outcome) []model.Detail {
	unmet, byItem := r.unmetReasons(given, out), dispositions(out)
	var details []model.Detail
	add := func(about, code, message string) {
		details = append(details, model.Detail{About: about, Reason: model.Reason{Code: code, Message: message}})
	}
	more := 0
	for _, g := range r.Gangs {
		asks := asksFor(g, b)
		switch summary := gangSummary(g, byItem, unmet.gangs[g.Number]); {
		case asks == "":
		case len(details) == mostElsewhere:
			more++
		default:
			text := fmt.Sprintf("%s, in addition to the tasks; %s", asks, r.tally(&summary))
			if reason := unmet.gangs[g.Number]; reason != nil {
				text += ": " + reason.Message
			}
			add(strings.TrimSpace("gang "+g.ID), summary.Worst(), text)
		}
	}
	if more > 0 {
		add("gangs", model.DispositionWaiting, fmt.Sprintf("%d more ask for this", more))
	}
	for i, c := range r.Claims {
		left := out.LeftOf(i, c)
		for k, it := range c.Items {
			if !it.Request.Bundle.Equal(b) {
				continue
			}
			reason := reasonAt(unmet.claims[i], k)
			summary := summaryOf(model.KindRequestResources, it, byItem[it], left[k], reason.Code)
			add(c.Purpose, summary.Worst(), strings.TrimSuffix(r.tally(&summary)+": "+reason.Message, ": "))
		}
	}
	return details
}

// asksFor describes how a gang asks for a bundle: how many of its bundles are equal, and in which choice; or all of
// them together if they share a node. It returns an empty string if the gang does not ask for the bundle.
func asksFor(g *fleet.Gang, b raydemand.Bundle) string {
	all := g.Alternatives()
	for k, bundles := range all {
		n, whole := 0, raydemand.Bundle{}
		for _, own := range bundles {
			whole.Add(own)
			if own.Equal(b) {
				n++
			}
		}
		of := "its bundles"
		if k > 0 {
			of = "the bundles of its " + phrase.Choice(k, len(all))
		}
		switch {
		case g.Strategy == raydemand.StrictPack && whole.Equal(b) && len(bundles) > 1:
			return fmt.Sprintf("%s, which share a node, ask for this together", of)
		case n > 0:
			return fmt.Sprintf("%d of %s ask for this", n, of)
		}
	}
	return ""
}
