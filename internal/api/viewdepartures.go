package api

import (
	"cmp"
	"slices"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
)

// maxDepartures bounds the workers that an answer lists: a whole fleet may go at once.
const maxDepartures = 100

// departures returns the workers whose machine is about to go: certain ones first, and then by deadline.
func (v View) departures() []apiv1.Departure {
	var all []apiv1.Departure
	for i := range v.Snapshot.Nodes {
		n := &v.Snapshot.Nodes[i]
		if n.Going == nil {
			continue
		}
		d := apiv1.Departure{Pod: n.Pod, Group: n.Group, Sign: string(n.Going.Sign), Message: n.Going.Message,
			Certain: n.Going.Certain, Leaving: n.State == planner.Leaving}
		if at := n.Going.Deadline; !at.IsZero() {
			d.Deadline = &at
		}
		all = append(all, d)
	}
	slices.SortStableFunc(all, func(a, b apiv1.Departure) int {
		switch {
		case a.Certain != b.Certain:
			return choose(a.Certain)
		case (a.Deadline == nil) != (b.Deadline == nil):
			return choose(a.Deadline != nil)
		case a.Deadline == nil:
			return cmp.Compare(a.Pod, b.Pod)
		}
		return cmp.Or(a.Deadline.Compare(*b.Deadline), cmp.Compare(a.Pod, b.Pod))
	})
	return all[:min(len(all), maxDepartures)]
}

// choose orders what is first before the rest.
func choose(first bool) int {
	if first {
		return -1
	}
	return 1
}
