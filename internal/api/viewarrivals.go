package api

import (
	"cmp"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
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
				Since: moment(a.Since), ExpectedAt: moment(a.ExpectedAt), LateAt: moment(a.LateAt)})
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
