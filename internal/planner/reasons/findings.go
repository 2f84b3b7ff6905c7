package reasons

import (
	"fmt"
	"strconv"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// LimitFindings reports groups whose limits contradict each other. The plan leaves them as they are.
func (w *Writer) LimitFindings() []raydemand.Finding {
	var all []raydemand.Finding
	for i := range w.Groups {
		if g := &w.Groups[i]; g.Blocked.Code == model.CodeInvalidLimits {
			all = append(all, raydemand.Finding{
				Code:     model.FindingMinAboveMax,
				Severity: raydemand.Error,
				Object:   "group " + g.Name,
				Field:    "minReplicas",
				Seen:     strconv.Itoa(g.Min),
				Why: fmt.Sprintf(
					"above maxReplicas %d; the operator stops reconciling the whole cluster, "+
						"so the plan leaves the group as it is",
					g.Max,
				),
				Fix: "lower minReplicas or raise maxReplicas",
			})
		}
	}
	return all
}

// UnpricedFindings reports groups without a price, which make the prices of their substitutes irrelevant.
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
				Code:     model.FindingUnpriced,
				Severity: raydemand.Info,
				Object:   "group " + w.Groups[i].Name,
				Field:    "price",
				Why: fmt.Sprintf(
					"%s could serve the same work and %s a price; because this group has none, "+
						"the plan compares all of them by accelerators, CPUs and memory",
					strings.Join(names, ", "),
					phrase.HasOrHave(int64(len(names))),
				),
				Fix: "set the group's price",
			})
		}
	}
	return all
}
