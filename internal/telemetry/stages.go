package telemetry

import (
	"maps"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// The stages of a scale-up. seen_to_alive includes all of them.
const (
	seenToPatched      = "seen_to_patched"
	patchedToScheduled = "patched_to_scheduled"
	scheduledToAlive   = "scheduled_to_alive"
	seenToAlive        = "seen_to_alive"
)

// maxFollowed is how long after a patch a new pod of the group can be its result.
const maxFollowed = time.Hour

// stages follows the pods of one RayCluster from the patch that requested them until their Ray nodes are alive. A new
// stages is empty.
type stages struct {
	// growth is the last patch that made a group larger, by group. coming are the pending pods, by name.
	growth map[string]growth
	coming map[string]progress
}

// growth has the time when growth was first wanted, and the time of the patch.
type growth struct{ seen, patched time.Time }

// progress is one pending pod. Its growth is zero if no known patch requested it, and scheduled is zero until the pod
// is bound to a node.
type progress struct {
	growth
	scheduled time.Time
}

// observe calls stage at the end of each stage that a decision shows. Kubernetes times are in whole seconds, so stages
// are only that accurate. A stage whose end is before its start has duration zero. A pod that was alive when first
// observed has no stages.
func (s *stages) observe(d *addon.Decision, stage func(name string, took time.Duration)) {
	// Groups come and go with the RayCluster's spec.
	maps.DeleteFunc(s.growth, func(_ string, g growth) bool { return d.At.Sub(g.patched) > maxFollowed })
	for _, a := range d.Actions {
		if grew(a) {
			if s.growth == nil {
				s.growth = map[string]growth{}
			}
			s.growth[a.Group] = growth{seen: a.At.Add(-d.SeenToPatched), patched: a.At}
		}
	}
	if d.RayErr != "" {
		return
	}
	workers, before := workersOf(d), s.coming
	s.coming = nil
	for i := range d.Snapshot.Nodes {
		n := &d.Snapshot.Nodes[i]
		p, known := before[n.Pod]
		if n.Expected || n.State == planner.Leaving || alive(n) && !known {
			continue
		}
		w := workers(n.Pod)
		// The time of creation can be truncated by up to one second.
		if g := s.growth[n.Group]; !known && !g.patched.IsZero() && w.CreatedAt.After(g.patched.Add(-time.Second)) {
			p.growth = g
		}
		if p.scheduled.IsZero() && !w.ScheduledAt.IsZero() {
			if p.scheduled = w.ScheduledAt; !p.patched.IsZero() {
				stage(patchedToScheduled, max(0, p.scheduled.Sub(p.patched)))
			}
		}
		if !alive(n) {
			if s.coming == nil {
				s.coming = map[string]progress{}
			}
			s.coming[n.Pod] = p
			continue
		}
		if !p.scheduled.IsZero() {
			stage(scheduledToAlive, max(0, d.At.Sub(p.scheduled)))
		}
		if !p.seen.IsZero() {
			stage(seenToAlive, max(0, d.At.Sub(p.seen)))
		}
	}
}

// workersOf looks up pods by name; a zero worker is unknown. It builds its index lazily, because most cycles look up
// none.
func workersOf(d *addon.Decision) func(pod string) nodepool.Worker {
	var index map[string]int
	return func(pod string) nodepool.Worker {
		pods := d.Pods.Get()
		if index == nil {
			index = make(map[string]int, len(pods))
			for i := range pods {
				index[pods[i].Pod] = i
			}
		}
		if i, known := index[pod]; known {
			return pods[i]
		}
		return nodepool.Worker{}
	}
}
