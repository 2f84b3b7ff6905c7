package api

import (
	"cmp"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
)

// maxArrivals bounds the workers that an answer lists: a whole fleet may start at once.
const maxArrivals = 100

// arrivals returns the starting workers: by group, then those that have come furthest, then those that came earliest.
func (v View) arrivals() []apiv1.Arrival {
	var all []apiv1.Arrival
	for i := range v.Snapshot.Nodes {
		n := &v.Snapshot.Nodes[i]
		if a := n.Arrival; a != nil {
			all = append(all, apiv1.Arrival{Pod: n.Pod, Group: n.Group, Stage: string(a.Stage), Message: a.Message,
				Since: moment(a.Since)})
		}
	}
	order := make(map[string]int, len(arrival.Stages))
	for i, stage := range arrival.Stages {
		order[string(stage)] = i
	}
	slices.SortStableFunc(all, func(a, b apiv1.Arrival) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(order[b.Stage], order[a.Stage]),
			compareMoments(a.Since, b.Since), cmp.Compare(a.Pod, b.Pod))
	})
	return all[:min(len(all), maxArrivals)]
}

// moment returns a time, or nil if it is zero.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// compareMoments orders unknown times last.
func compareMoments(a, b *time.Time) int {
	if a != nil && b != nil {
		return a.Compare(*b)
	}
	return choose(a != nil) - choose(b != nil)
}

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
		d := apiv1.Departure{Pod: n.Pod, Group: n.Group, Sign: string(n.Going.Sign), Message: n.Going.Why(),
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
