package controller

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"heliostat.dev/heliostat/internal/controller/backoff"
	"heliostat.dev/heliostat/internal/controller/breaker"
	"heliostat.dev/heliostat/internal/controller/consolidation"
	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/event"
	"heliostat.dev/heliostat/internal/controller/head"
	"heliostat.dev/heliostat/internal/controller/idleness"
	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/controller/numgpus"
	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/ownerstatus"
	"heliostat.dev/heliostat/internal/controller/pace"
	"heliostat.dev/heliostat/internal/controller/provision"
	"heliostat.dev/heliostat/internal/controller/quota"
	"heliostat.dev/heliostat/internal/controller/reduction"
	"heliostat.dev/heliostat/internal/controller/reverts"
	"heliostat.dev/heliostat/internal/controller/upgrade"
	"heliostat.dev/heliostat/internal/controller/warmnodes"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool/arrival"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// record is what the process remembers of one RayCluster between cycles. All of it is an optimization or a delay for
// safety: the goal is computed from what is observed, and what must survive a restart is in the Kubernetes API.
type record struct {
	mu sync.Mutex // one cycle at a time; guards all below but decision, and moving, which Controller.mu guards too
	memory
	stands standing

	moving bool // written with both locks held
	// slotAt is when the next cycle may begin while the limit on cycles delays it; zero otherwise. urgent: it needs no
	// slot, because a reading asked for it.
	slotAt time.Time
	urgent bool
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
	use         observation.UseClock
	lag         observation.PlacementLag
	gangs       observation.Gangs
	drains      reduction.Drains
	breakers    breaker.Groups
	shortage    breaker.Shortages
	refusals    quota.Refusals
	provisions  provision.Requests
	reverts     reverts.History
	clocks      observation.Clocks
	unplaceable observation.Unplaceable
	starts      arrival.History
	reported    ownerstatus.Reported
	guard       reduction.DropGuard
	// shapes outlive the nodes they were learned from, so that a group scaled to zero keeps its real shape.
	shapes observation.Shapes
	// lastNodes are the nodes that Ray last reported in this session.
	lastNodes []raydemand.Node

	conditions event.Conditions
	reports    reports
	configs    clusterConfigs
	recent     []decision.Action

	// generation is that of the last patch of this process; zero if there was none.
	generation int64
	patches    backoff.Pause
	// conflicts counts the conflicts in a row, which slow the loop down a little.
	conflicts int
	// unwritten is why the last patch failed; nil after one succeeds or when there is nothing to write.
	unwritten     error
	numGPUsWrites numgpus.Writes
	syncBackoff   backoff.Pause
	protection    protection
	// idleClock measures for how long the RayCluster has been without work; idleWrites backs off after a write failed,
	// for the reason idleErr.
	idleClock  idleness.Clock
	idleWrites backoff.Pause
	idleErr    string
	// consolidation remembers which workers could leave; moveWrites backs off after a drain for it failed.
	consolidation consolidation.Tracker
	moveWrites    backoff.Pause
	endable       endable
	nodes         warmnodes.Keeper
	// forecast is what forecasts would keep, until the next one is due.
	forecast    []planner.WarmEntry
	forecastDue time.Time
	jobs        jobReading
	// upgrade is the upgrade in which the RayCluster is the newer one; olderRead has the result of a reading of the
	// older one that runs, and is nil if none does.
	upgrade   upgrade.Tracker
	olderRead chan olderRead
	// warmMeter adds up what warm capacity costs.
	warmMeter capacity.Meter
	// policies backs off after a status of a CapacityPolicy could not be written, for the reason policyErr.
	policies  backoff.Pause
	policyErr error
	// provisioned: this process may have made ProvisioningRequests, so it takes them back when the RayCluster is no
	// longer managed. provisioning backs off after a write that failed.
	provisioned  bool
	provisioning backoff.Pause
	provisionErr error               // why the last of these writes failed; nil after one that succeeded
	named        reduction.NamedPods // pods that were named while no living node was in them
	// freshReads backs off after a fresh read that failed; freshErr is its error.
	freshReads backoff.Pause
	freshErr   error
	// growthSince is since when growth is wanted that is not patched yet.
	growthSince time.Time
	movement    pace.Movement
	// turn is where the next plan continues among demand that was too much for the last one.
	turn string
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
	r.use = observation.UseClock{}
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
	r.use.Observe(v.Now, v.State.Nodes)
	v.Demand = v.State.Demand
	v.Demand.Requests = r.lag.Correct(v.Now, v.State)
	r.gangs.Observe(v.Now, v.State.Demand.Gangs)
	r.unplaceable.Observe(v.Now, v.State.Nodes, v.Demand)
	r.drains.Observe(v.Now, v.State.Nodes, config.DrainTimeout)
	r.drains.KeepDeadlines(*v, config.DrainDeadline)
	r.clocks.Observe(v.Now, v.Members, v.State.Demand,
		len(v.Cluster.RequestResources)+len(ownerstatus.Counted(&v.Cluster, r.reported, v.Now)) > 0)
	r.starts.Observe(v.Now, observation.Starting(v.Cluster, v.Members), config.nodeTimes)
	r.breakers.Observe(v.Now, v.Cluster, v.Members, r.shortage.Observe(v.Now, v.Cluster, v.Members, config.breakers()),
		config.breakers())
	r.refusals.Observe(v.Now, v.Cluster, v.Members)
	r.guard.Observe(v.Now, v.Cluster, v.Members, v.State.Nodes, r.drains.Leaving)
	r.drains.Prune(v.Members)
	r.shapes.Observe(v.Cluster, v.Members)
	r.forgetFormerGroups(v)
	r.movement.Observe(v.Now, v.State.Demand, v.Members)
}

// idleFor returns how long a node has been unused and could have taken work.
func (r *record) idleFor(now time.Time, n *raydemand.Node) time.Duration {
	return r.joined.Bound(now, n.ID, max(n.Idle, r.idle.Idle(n.ID)))
}

const (
	// placed is how long after a node has joined or become idle Ray shows the work that it places there in that moment:
	// a second for the report of the node, and more on busy machines. Until its first report, a node counts as running.
	placed = 3 * time.Second
	// unsteady is how long work may come and go on a node before the node is drained while something runs there. It is
	// a quarter of the warning that spot machines of AWS get.
	unsteady = 30 * time.Second
)

// settled reports whether Ray has shown what it placed on a node whose machine goes, so that a drain ends no node on
// which work is just being placed. Something in use proves nothing for a while: drained soon after it had joined, or
// after its last work had ended, such a node ended at once (docs/reference/facts.md#drain-race).
func (r *record) settled(now time.Time, m membership.Member) bool {
	if r.joined.Bound(now, m.Node.ID, placed) < placed {
		return false
	}
	shown := r.use.For(now, m.Node.ID)
	switch observation.UseOf(m.Node) {
	case observation.Unused:
		return r.idleFor(now, m.Node) >= placed
	case observation.Works:
		return shown >= placed || r.clocks.GoingFor(m.Pod, now) >= unsteady
	}
	return shown >= raydemand.ProcessStart
}

// snapshotInput collects what the planner's snapshot of v is made of.
func (r *record) snapshotInput(v observation.View, config Config) observation.SnapshotInput {
	s := observation.SnapshotInput{
		Now: v.Now, Cluster: v.Cluster, Members: v.Members, Head: v.Head, Demand: v.Demand,
		Idle:        make(map[raydemand.NodeID]time.Duration, len(v.Members)),
		Leaving:     map[raydemand.NodeID]bool{},
		Unplaceable: map[raydemand.NodeID]raydemand.Bundle{},
		Crashed:     map[string]bool{},
		Breakers:    r.breakers,
		NodeComing:  r.shortage.Coming,
		Since:       r.reports.since,
		Shapes:      r.shapes,
		Quotas:      r.refusals.Bounds(v.Now),
		TakenBack:   r.refusals.TakenBack,
		Surge:       config.Surge,
		Warm:        r.warmWanted(v, config),
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
	var starting []membership.Member
	for _, m := range s.Members {
		if m.Node == nil {
			starting = append(starting, m)
		} else {
			if m.Node.Status == raydemand.Idle {
				s.Idle[m.Node.ID] = r.idleFor(v.Now, m.Node)
			}
			if r.drains.Leaving(m.Node.ID) {
				s.Leaving[m.Node.ID] = true
			}
			if waits := r.unplaceable.Of(m.Node, v.Now); waits != nil {
				s.Unplaceable[m.Node.ID] = waits
			}
		}
		if m.Dead() && r.clocks.DeadFor(m.Pod, v.Now) >= config.DeadGrace {
			s.Crashed[m.Pod] = true
		}
	}
	times := func(g arrival.Group) arrival.Times { return r.starts.Times(g, config.nodeTimes) }
	s.Arrivals = observation.ArrivalsOf(observation.Starting(v.Cluster, starting), times)
	return s
}

// keepRecent keeps the latest actions for the web page; those that scale nothing would displace the others.
func (r *record) keepRecent(actions []decision.Action) {
	const kept = 30
	for _, a := range actions {
		if !a.ScalesNothing() {
			r.recent = append(r.recent, a)
		}
	}
	if surplus := len(r.recent) - kept; surplus > 0 {
		r.recent = append([]decision.Action(nil), r.recent[surplus:]...)
	}
}

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
