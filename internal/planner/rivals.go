package planner

import (
	"fmt"
	"strings"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/internal/planner/phrase"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// unpricedFindings tells of groups without a price that keep those of their rivals from counting.
func (w *words) unpricedFindings() []raydemand.Finding {
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
				Why: fmt.Sprintf("%s could serve the same work and %s a price; as this group has none, they are all told apart by accelerators, CPUs and memory",
					strings.Join(names, ", "), phrase.HasOrHave(int64(len(names)))),
				Fix: "give the group a price",
			})
		}
	}
	return all
}
