package telemetry

import "time"

// The stages of a scale-up. seen_to_alive is all of them.
const (
	seenToPatched      = "seen_to_patched"
	patchedToScheduled = "patched_to_scheduled"
	scheduledToAlive   = "scheduled_to_alive"
	seenToAlive        = "seen_to_alive"
)

// stages follows one cluster's pods from the patch that asked for them until their Ray node lives. It starts empty: a
// pod that was alive when first seen, or that no patch of this process asked for, has no beginning.
type stages struct {
	// growth is the last patch that made a group larger.
	growth map[string]growth
	// coming are the pods on their way, by name.
	coming map[string]*progress
}

// growth is when growth was first wanted, and when it was patched.
type growth struct{ seen, patched time.Time }

// progress is one pod on its way. Its growth is zero if no patch is known to have asked for it.
type progress struct {
	growth
	group string
	// scheduled and alive are when it got a node and when its Ray node was first seen alive.
	scheduled, alive time.Time
	// last is the latest cycle that saw it.
	last time.Time
}

// stageHooks are called for pods on their way.
type stageHooks struct {
	// stage is called when a stage ends.
	stage func(name string, took time.Duration)
	// arrived: the Ray node of a pod lives. lost: a pod is gone before that. Both may be nil.
	arrived, lost func(pod string, j *progress)
}

// observe adds a cycle and reports what has ended. Kubernetes has whole seconds only, so a stage is no more exact than
// that, and one that seems to end before it began took no time.
func (s *stages) observe(c Cycle, hooks stageHooks) {
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
	for name, j := range s.coming {
		if !j.last.Equal(c.At) {
			delete(s.coming, name)
			if hooks.lost != nil {
				hooks.lost(name, j)
			}
		}
	}
}

// grew notes which growth asks for the pods of a group that are created from now on.
func (s *stages) grew(group string, g growth) {
	if s.growth == nil {
		s.growth = map[string]growth{}
	}
	s.growth[group] = g
}

// follow adds a pod on its way.
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
	// The time of creation may be truncated by a second.
	if g := s.growth[p.Group]; !g.patched.IsZero() && created.After(g.patched.Add(-time.Second)) {
		j.growth = g
	}
	if s.coming == nil {
		s.coming = map[string]*progress{}
	}
	s.coming[p.Name] = j
	return j
}

// schedule ends the stage before a node, once.
func (j *progress) schedule(p Pod, c Cycle, hooks stageHooks) {
	if !j.scheduled.IsZero() {
		return
	}
	_, j.scheduled = c.Moments(p.Name)
	if !j.scheduled.IsZero() && !j.patched.IsZero() {
		hooks.stage(patchedToScheduled, max(0, j.scheduled.Sub(j.patched)))
	}
}

// arrive ends the last stage of a pod whose Ray node lives.
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
