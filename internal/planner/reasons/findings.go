package reasons

import (
	"fmt"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/internal/planner/search"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// LimitFindings reports groups whose limits no number of pods can keep; they are left as they are.
func (w *Writer) LimitFindings() []raydemand.Finding {
	var all []raydemand.Finding
	for i := range w.Groups {
		if g := &w.Groups[i]; g.Blocked.Code == model.CodeInvalidLimits {
			all = append(all, raydemand.Finding{
				Code: model.FindingMinAboveMax, Severity: raydemand.Error, Object: "group " + g.Name, Field: "minReplicas", Seen: strconv.Itoa(g.Min),
				Why: fmt.Sprintf(
					"above maxReplicas %d, with which the operator stops the whole cluster; the group is left as it is",
					g.Max,
				),
				Fix: "lower minReplicas or raise maxReplicas",
			})
		}
	}
	return all
}

// UnpricedFindings reports groups without a price that keep those of their substitutes from counting.
func (w *Writer) UnpricedFindings() []raydemand.Finding {
	var all []raydemand.Finding
	r := &w.Costs.Substitutes
	for i := range w.Groups {
		if w.Groups[i].Price != nil {
			continue
		}
		var names []string
		for k := range w.Groups {
			if r.Of[k] == r.Of[i] && w.Groups[k].Price != nil {
				names = append(names, w.Groups[k].Name)
			}
		}
		if len(names) > 0 {
			all = append(all, raydemand.Finding{
				Code: model.FindingUnpriced, Severity: raydemand.Info, Object: "group " + w.Groups[i].Name, Field: "price",
				Why: fmt.Sprintf(
					"%s could serve the same work and %s a price; as this group has none, they are all told apart by accelerators, CPUs and memory",
					strings.Join(names, ", "),
					phrase.HasOrHave(int64(len(names))),
				),
				Fix: "give the group a price",
			})
		}
	}
	return all
}

func (w *Writer) ShareFindings() []raydemand.Finding {
	if len(w.Beyond) == 0 {
		return nil
	}
	return []raydemand.Finding{{
		Code: model.FindingTooManyRequests, Severity: raydemand.Warning, Object: "snapshot", Field: "ownedRequests",
		Seen: fmt.Sprintf("%d with %d shapes", w.OwnedCount+len(w.Beyond), w.OwnedShapes+search.ShapesOf(w.Beyond)),
		Why: fmt.Sprintf(
			"a plan takes in %d requests of owners with %d shapes together, shared fairly by owners, "+
				"of each owner by priority, the satisfied ones first, then by age; %d do not count",
			search.MaxOwned,
			search.MaxOwnedShapes,
			len(w.Beyond),
		),
		Fix: "delete ResourceRequests that nobody needs, or ask for fewer different bundles in them",
	}}
}
