package telemetry

import "time"

// The stages of a scale-up. seen_to_alive is the whole way.
const (
	seenToPatched      = "seen_to_patched"
	patchedToScheduled = "patched_to_scheduled"
	scheduledToAlive   = "scheduled_to_alive"
	seenToAlive        = "seen_to_alive"
)

// stages follows one cluster's pods from the patch that asked for them to the life of their Ray node. It starts anew with
// the process: a pod that was alive when first seen, or that no patch of this process asked for, has no beginning.
type stages struct {
	// growth is the last patch that made a group larger.
	growth map[string]growth
	// coming are the pods on their way, by name.
	coming map[string]*journey
}

// growth is when growth was first wanted, and when it was patched.
type growth struct{ seen, patched time.Time }

// journey is one pod on its way. Its growth is zero where no patch is known to have asked for it.
type journey struct {
	growth
	group string
	// scheduled and alive are when it got a node and when its Ray node was first seen to live.
	scheduled, alive time.Time
	// last is the cycle that saw it last.
	last time.Time
}

// hearers are told what happens to pods on their way.
type hearers struct {
	// stage ends.
	stage func(name string, took time.Duration)
	// arrived: the Ray node of a pod lives. lost: a pod is gone before that. Both may be nil.
	arrived, lost func(pod string, j *journey)
}

// observe takes a cycle in and tells what has ended. Kubernetes tells moments in whole seconds, so a stage is as exact as
// that, and one that seems to end before it began took no time.
func (s *stages) observe(c Cycle, tell hearers) {
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
			s.arrive(p, c, tell)
		} else {
			s.follow(p, c, tell)
		}
	}
	for name, j := range s.coming {
		if !j.last.Equal(c.At) {
			delete(s.coming, name)
			if tell.lost != nil {
				tell.lost(name, j)
			}
		}
	}
}

// grew notes which growth asks for the pods of a group that are made from now on.
func (s *stages) grew(group string, g growth) {
	if s.growth == nil {
		s.growth = map[string]growth{}
	}
	s.growth[group] = g
}

// follow notes a pod on its way.
func (s *stages) follow(p Pod, c Cycle, tell hearers) {
	j := s.coming[p.Name]
	if j == nil {
		j = s.begin(p, c)
	}
	j.last = c.At
	j.schedule(p, c, tell)
}

func (s *stages) begin(p Pod, c Cycle) *journey {
	j := &journey{group: p.Group}
	created, _ := c.Moments(p.Name)
	// A whole second may have been cut off the moment of creation.
	if g := s.growth[p.Group]; !g.patched.IsZero() && created.After(g.patched.Add(-time.Second)) {
		j.growth = g
	}
	if s.coming == nil {
		s.coming = map[string]*journey{}
	}
	s.coming[p.Name] = j
	return j
}

// schedule ends the stage before a node, once.
func (j *journey) schedule(p Pod, c Cycle, tell hearers) {
	if !j.scheduled.IsZero() {
		return
	}
	_, j.scheduled = c.Moments(p.Name)
	if !j.scheduled.IsZero() && !j.patched.IsZero() {
		tell.stage(patchedToScheduled, max(0, j.scheduled.Sub(j.patched)))
	}
}

// arrive ends the way of a pod whose Ray node lives.
func (s *stages) arrive(p Pod, c Cycle, tell hearers) {
	j := s.coming[p.Name]
	if j == nil {
		return
	}
	delete(s.coming, p.Name)
	j.schedule(p, c, tell)
	if !j.scheduled.IsZero() {
		tell.stage(scheduledToAlive, max(0, c.At.Sub(j.scheduled)))
	}
	if !j.seen.IsZero() {
		tell.stage(seenToAlive, max(0, c.At.Sub(j.seen)))
	}
	j.alive = c.At
	if tell.arrived != nil {
		tell.arrived(p.Name, j)
	}
}
