package controller

import (
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"heliostat.dev/heliostat/internal/controller/breaker"
	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/head"
	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/controller/numgpus"
	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/ownerstatus"
	"heliostat.dev/heliostat/internal/controller/reduction"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// record is what the process remembers of one RayCluster between cycles. All of it is an optimization or a delay for
// safety: the goal is computed from what is observed, and what must survive a restart is in the Kubernetes API.
type record struct {
	mu sync.Mutex // one cycle at a time; guards memory, slotAt, heavyTook and restUntil
	memory

	moving bool // guarded by Controller.mu
	// slotAt is when this cluster may be read next while the limit on readings delays it; zero otherwise.
	slotAt time.Time
	// heavyTook is how long the heavy plans of this cycle took; the next cycle starts no earlier than restUntil.
	heavyTook time.Duration
	restUntil time.Time

	decision atomic.Pointer[decision.Decision]
}

// memory is what is known of one RayCluster, and not of an earlier one with the same name.
type memory struct {
	uid string
	gcs head.Connection

	idle        observation.IdleClock
	joined      observation.RecentlyJoined
	lag         observation.PlacementLag
	gangs       observation.Gangs
	drains      reduction.Drains
	breakers    breaker.Groups
	shortage    breaker.Shortages
	clocks      observation.Clocks
	unplaceable observation.Unplaceable
	starts      ownerstatus.StartTimes
	reported    ownerstatus.Reported
	guard       reduction.DropGuard
	// shapes outlive the nodes they were learned from, so that a group scaled to zero keeps its real shape.
	shapes observation.Shapes
	// lastNodes are the nodes that Ray last reported in this session.
	lastNodes []raydemand.Node

	conditions conditions
	reports    reports
	configs    clusterConfigs
	recent     []decision.Action

	// generation is that of the last patch of this process; zero if there was none.
	generation int64
	patches    backoff
	// unwritten is why the last patch failed; nil after one succeeds or when there is nothing to write.
	unwritten     error
	numGPUsWrites numgpus.Writes
	syncBackoff   backoff
	named         reduction.NamedPods // pods that were named while no living node was in them
	// freshReads backs off after a fresh read that failed; freshErr is its error.
	freshReads backoff
	freshErr   error
	// growthSince is since when growth is wanted that is not patched yet.
	growthSince time.Time
	// seen and movedAt say when the cluster last changed, for pace.
	seen    fingerprint
	movedAt time.Time
}

func newRecord() *record { return &record{memory: newMemory("")} }

func newMemory(uid string) memory {
	return memory{uid: uid, drains: reduction.Drains{}, breakers: breaker.Groups{}, shapes: observation.Shapes{}}
}

// recreated clears the memory when the RayCluster was deleted and created again under the same name.
func (r *record) recreated(uid string) {
	if r.uid != "" && r.uid != uid {
		r.gcs.Close()
		r.memory = newMemory(uid)
	}
	r.uid = uid
}

// voidRay forgets what was observed of a Ray session that is over. The drop guard stays: it must notice that the nodes
// are gone.
func (r *record) voidRay() {
	r.idle, r.joined, r.clocks = observation.IdleClock{}, observation.RecentlyJoined{}, observation.Clocks{}
	r.lag, r.gangs, r.shortage = observation.PlacementLag{}, observation.Gangs{}, breaker.Shortages{}
	r.unplaceable = observation.Unplaceable{}
	r.drains = reduction.Drains{}
	r.reports, r.configs, r.lastNodes = reports{}, clusterConfigs{}, nil
}

// remember adds a view to the memory, before anything is decided from it.
func (r *record) remember(v *observation.View, config Config) {
	if !v.Live() {
		r.drains.KeepDeadlines(*v, config.DrainDeadline)
		r.clocks.Pause()
		r.unplaceable = observation.Unplaceable{}
		r.breakers.Pause(v.Now)
		r.shortage = breaker.Shortages{}
		return
	}
	r.lastNodes = v.State.Nodes
	r.idle.Observe(v.Now, v.State.Nodes, observation.JobsRestartIdleTimes(v.Cluster.RayVersion))
	r.joined.Observe(v.Now, v.State.Nodes)
	v.Demand = v.State.Demand
	v.Demand.Requests = r.lag.Correct(v.Now, v.State)
	r.gangs.Observe(v.Now, v.State.Demand.Gangs)
	r.unplaceable.Observe(v.Now, v.State.Nodes, v.Demand)
	r.drains.Observe(v.Now, v.State.Nodes, config.DrainTimeout)
	r.drains.KeepDeadlines(*v, config.DrainDeadline)
	r.clocks.Observe(v.Now, v.Members, v.State.Demand,
		len(v.Cluster.RequestResources)+len(ownerstatus.Counted(&v.Cluster, r.reported, v.Now)) > 0)
	r.starts.Observe(v.Now, v.Members)
	r.breakers.Observe(v.Now, v.Cluster, v.Members, r.shortage.Observe(v.Now, v.Cluster, v.Members, config.breakers()),
		config.breakers())
	r.guard.Observe(v.Now, v.Cluster, v.Members, v.State.Nodes, r.drains.Leaving)
	r.drains.Prune(v.Members)
	r.shapes.Observe(v.Cluster, v.Members)
	r.noteChange(v)
}

// snapshotInput collects what the planner's snapshot of v is made of.
func (r *record) snapshotInput(v observation.View, config Config) observation.SnapshotInput {
	s := observation.SnapshotInput{
		Now: v.Now, Cluster: v.Cluster, Members: v.Members, Head: v.Head, Demand: v.Demand,
		Idle:        map[raydemand.NodeID]time.Duration{},
		Leaving:     map[raydemand.NodeID]bool{},
		Unplaceable: map[raydemand.NodeID]raydemand.Bundle{},
		Crashed:     map[string]bool{},
		Breakers:    r.breakers,
		NodeComing:  r.shortage.Coming,
		Since:       r.reports.since,
		Shapes:      r.shapes,
	}
	if v.Live() {
		s.PlainRequests, s.OwnedRequests = v.Cluster.RequestResources, ownerstatus.Counted(&v.Cluster, r.reported,
			v.Now)
	} else {
		s.DemandUnknown, s.Members = unknownDemand(v.StateErr), membership.Join(v.Cluster, r.lastNodes)
	}
	if s.Head != nil {
		s.Unplaceable[s.Head.ID] = r.unplaceable.Of(s.Head, v.Now)
	}
	for _, m := range s.Members {
		if m.Node != nil {
			s.Idle[m.Node.ID] = r.joined.Bound(v.Now, m.Node.ID, max(m.Node.Idle, r.idle.Idle(m.Node.ID)))
			s.Leaving[m.Node.ID] = r.drains.Leaving(m.Node.ID)
			s.Unplaceable[m.Node.ID] = r.unplaceable.Of(m.Node, v.Now)
		}
		s.Crashed[m.Pod] = m.Dead() && r.clocks.DeadFor(m.Pod, v.Now) >= config.DeadGrace
	}
	return s
}

// fingerprint is what counts as a change for pace.
type fingerprint struct {
	Demand raydemand.Demand
	Pods   map[string]string
}

func (r *record) noteChange(v *observation.View) {
	now := fingerprint{Demand: v.State.Demand, Pods: make(map[string]string, len(v.Members))}
	for _, m := range v.Members {
		status := "unjoined"
		if m.Node != nil {
			status = string(m.Node.Status)
		}
		if m.Terminating {
			status = "terminating"
		}
		now.Pods[m.Pod] = status
	}
	if !reflect.DeepEqual(now, r.seen) {
		r.seen, r.movedAt = now, v.Now
	}
}

// keepRecent keeps the latest actions for the web page; reports to Ray scale nothing and would displace the others.
func (r *record) keepRecent(actions []decision.Action) {
	const kept = 30
	for _, a := range actions {
		if !a.ReportsOnly() {
			r.recent = append(r.recent, a)
		}
	}
	if surplus := len(r.recent) - kept; surplus > 0 {
		r.recent = append([]decision.Action(nil), r.recent[surplus:]...)
	}
}

// backoff slows the loop down after a patch that failed, and counts conflicts in a row, which slow it down a little.
type backoff struct {
	failures, conflicts int
	retryAt             time.Time
}

func (p *backoff) fail(now time.Time) {
	p.retryAt = now.Add(min(500*time.Millisecond<<min(p.failures, 10), 30*time.Second))
	p.failures++
}

func (p *backoff) resting(now time.Time) bool { return now.Before(p.retryAt) }

// unknownDemand returns why Ray's demand is unknown, for the reasons of the groups.
func unknownDemand(err error) string {
	why := "Ray does not answer"
	switch {
	case errors.Is(err, errOff):
		why = "the mode is off"
	case errors.Is(err, head.ErrNoAddress):
		why = "there is no head"
	}
	return why + ", so its demand is unknown, and nothing is launched"
}
