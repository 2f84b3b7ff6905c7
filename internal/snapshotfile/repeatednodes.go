package snapshotfile

import (
	"fmt"

	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// placesOnce keeps the first of the places of one existing node, and returns findings about the others: they would
// count what is free there again.
func placesOnce(s *model.Snapshot, file string) (all []raydemand.Finding) {
	first := map[string]int{}
	var kept []landing.Place
	for i, place := range s.Places {
		before, repeated := first[place.Node]
		switch {
		case place.Node == "" || place.New:
		case repeated:
			all = append(all, raydemand.Finding{
				Code: model.FindingNodeRepeated, Severity: raydemand.Warning, Object: file,
				Field: fmt.Sprintf("places[%d].node", i), Seen: place.Node,
				Why: fmt.Sprintf("places[%d] is the same node; the plan counts that one", before),
				Fix: "list each node once",
			})
			continue
		default:
			first[place.Node] = i
		}
		kept = append(kept, place)
	}
	if len(all) > 0 {
		s.Places = kept
	}
	return all
}
