package telemetry

import (
	"maps"
	"time"
)

// The stages of a scale-up. seen_to_alive includes all of them.
const (
	seenToPatched      = "seen_to_patched"
	patchedToScheduled = "patched_to_scheduled"
	scheduledToAlive   = "scheduled_to_alive"
	seenToAlive        = "seen_to_alive"
)

// maxFollowed is how long the pods of a patch are followed.
const maxFollowed = time.Hour

// stages follows the pods of one cluster from the patch that requested them until their Ray nodes are alive. A new
// stages is empty. If a pod was alive when first observed, or no patch of this process requested it, its start time is
// unknown.
type stages struct {
	// growth is the last patch that made a group larger.
	growth map[string]growth
	// coming are the pending pods, by name.
	coming map[string]*progress
}

// growth has the time when growth was first wanted, and the time of the patch.
type growth struct{ seen, patched time.Time }

// progress is one pending pod. Its growth is zero if no known patch requested it.
type progress struct {
	growth
	group string
	// scheduled is when the pod was bound to a node, and alive is when its Ray node was first observed alive.
	scheduled, alive time.Time
	// last is the latest cycle that observed the pod.
	last time.Time
}

// stageHooks are called for pending pods.
type stageHooks struct {
	// stage is called at the end of a stage.
	stage func(name string, took time.Duration)
	// arrived is called when the Ray node of a pod is alive; it can be nil.
	arrived func(pod string, j *progress)
}

// observe adds a cycle and reports the stages that have ended. Kubernetes times are in whole seconds, so stages are
// only that accurate. A stage whose end is before its start has duration zero.
func (s *stages) observe(c Cycle, hooks stageHooks) {
	// Groups come and go with the RayCluster's spec. What comes an hour after a patch is not its result.
	maps.DeleteFunc(s.growth, func(_ string, g growth) bool { return c.At.Sub(g.patched) > maxFollowed })
	for _, a := range c.Actions {
		if a.Grown != "" {
			s.grew(a.Grown, growth{seen: a.At.Add(-c.SeenToPatched), patched: a.At})
		}
	}
	if c.Pods == nil {
		return
	}
	for p := range c.Pods {
		if p.Alive {
			s.arrive(p, c, hooks)
		} else {
			s.follow(p, c, hooks)
		}
	}
	maps.DeleteFunc(s.coming, func(_ string, j *progress) bool { return !j.last.Equal(c.At) })
}

// grew stores the growth that requests the pods of a group created from now on.
func (s *stages) grew(group string, g growth) {
	if s.growth == nil {
		s.growth = map[string]growth{}
	}
	s.growth[group] = g
}

// follow adds a pending pod.
func (s *stages) follow(p Pod, c Cycle, hooks stageHooks) {
	j := s.coming[p.Name]
	if j == nil {
		j = s.begin(p, c)
	}
	j.last = c.At
	j.schedule(p, c, hooks)
}

func (s *stages) begin(p Pod, c Cycle) *progress {
	j := &progress{group: p.Group}
	created, _ := c.Moments(p.Name)
	// The time of creation can be truncated by up to one second.
	if g := s.growth[p.Group]; !g.patched.IsZero() && created.After(g.patched.Add(-time.Second)) {
		j.growth = g
	}
	if s.coming == nil {
		s.coming = map[string]*progress{}
	}
	s.coming[p.Name] = j
	return j
}

// schedule ends the stage before the binding to a node, once.
func (j *progress) schedule(p Pod, c Cycle, hooks stageHooks) {
	if !j.scheduled.IsZero() {
		return
	}
	_, j.scheduled = c.Moments(p.Name)
	if !j.scheduled.IsZero() && !j.patched.IsZero() {
		hooks.stage(patchedToScheduled, max(0, j.scheduled.Sub(j.patched)))
	}
}

// arrive ends the last stage of a pod whose Ray node is alive.
func (s *stages) arrive(p Pod, c Cycle, hooks stageHooks) {
	j := s.coming[p.Name]
	if j == nil {
		return
	}
	delete(s.coming, p.Name)
	j.schedule(p, c, hooks)
	if !j.scheduled.IsZero() {
		hooks.stage(scheduledToAlive, max(0, c.At.Sub(j.scheduled)))
	}
	if !j.seen.IsZero() {
		hooks.stage(seenToAlive, max(0, c.At.Sub(j.seen)))
	}
	j.alive = c.At
	if hooks.arrived != nil {
		hooks.arrived(p.Name, j)
	}
}
