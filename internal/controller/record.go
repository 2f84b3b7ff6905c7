package controller

import (
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// record is what the process keeps of one RayCluster between cycles. All of it is an optimisation or a safety delay: the
// goal is computed from what is seen, and what must survive is in the Kubernetes API.
type record struct {
	mu sync.Mutex // one cycle at a time; guards memory and turnAt
	memory

	moving bool // guarded by Controller.mu
	// turnAt is when this cluster may be read next while too many want to be; else zero.
	turnAt time.Time

	decision atomic.Pointer[decision.Decision]
}

// memory is what is known of one RayCluster, and of none that had its name before.
type memory struct {
	uid  string
	line connection

	idle     idleClock
	fresh    newcomers
	lag      lag
	gangs    gangs
	drains   drains
	breakers breakers
	shortage shortages
	waits    waits
	refusals refusals
	starts   startTimes
	owned    ownedNews
	guard    dropGuard
	// shapes outlive the nodes they were learned from, so that a group scaled to zero keeps its real shape.
	shapes shapes
	// account is what Ray last said of its nodes in this session.
	account []raydemand.Node

	conditions conditions
	reports    reports
	configs    clusterConfigs
	recent     []decision.Action

	// generation is that of our last patch; zero when there was none.
	generation int64
	patches    patchBackoff
	// unwritten is why the last patch failed; nil once one succeeded or nothing is to be written.
	unwritten error
	syncs     syncs
	named     namedPods // pods that we named while no living node was in them
	// looks slows the second look down after one that failed; lookErr is why it did.
	looks   patchBackoff
	lookErr error
	// wantedAt is when the growth that is not patched yet was first wanted.
	wantedAt time.Time
	// seen and movedAt tell when the cluster last changed, for the pace.
	seen    fingerprint
	movedAt time.Time
}

func newRecord() *record { return &record{memory: newMemory("")} }

func newMemory(uid string) memory {
	return memory{uid: uid, drains: drains{}, breakers: breakers{}, shapes: shapes{}}
}

// recreated voids everything when the RayCluster was deleted and created anew under the same name.
func (r *record) recreated(uid string) {
	if r.uid != "" && r.uid != uid {
		r.line.close()
		r.memory = newMemory(uid)
	}
	r.uid = uid
}

// voidRay forgets what was observed of a Ray session that is over. The guard stays: that its nodes are gone is news.
func (r *record) voidRay() {
	r.idle, r.fresh, r.lag, r.gangs, r.waits, r.shortage = idleClock{}, newcomers{}, lag{}, gangs{}, waits{}, shortages{}
	r.refusals = refusals{}
	r.drains = drains{}
	r.reports, r.configs, r.account = reports{}, clusterConfigs{}, nil
}

// remember takes a view in, before anything is decided from it.
func (r *record) remember(v *view, config Config) {
	if !v.live() {
		r.drains.keepDeadlines(*v, config.DrainDeadline)
		r.waits.pause()
		r.refusals = refusals{}
		r.breakers.pause(v.now)
		r.shortage = shortages{}
		return
	}
	r.account = v.state.Nodes
	r.idle.observe(v.now, v.state.Nodes, jobsRestartIdleTimes(v.cluster.RayVersion))
	r.fresh.observe(v.now, v.state.Nodes)
	v.demand = v.state.Demand
	v.demand.Requests = r.lag.settle(v.now, v.state)
	r.gangs.observe(v.now, v.state.Demand.Gangs)
	r.refusals.observe(v.now, v.state.Nodes, v.demand)
	r.drains.observe(v.now, v.state.Nodes, config.DrainTimeout)
	r.drains.keepDeadlines(*v, config.DrainDeadline)
	r.waits.observe(v.now, v.members, v.state.Demand, len(v.cluster.RequestResources)+len(countedRequests(&v.cluster, r.owned, v.now)) > 0)
	r.starts.observe(v.now, v.members)
	r.breakers.observe(v.now, v.cluster, v.members, r.shortage.observe(v.now, v.cluster, v.members, config.breakers()), config.breakers())
	r.guard.observe(v.now, v.cluster, v.members, v.state.Nodes, r.drains.leaving)
	r.drains.prune(v.members)
	r.shapes.observe(v.cluster, v.members)
	r.noteChange(v)
}

// sight gathers what the snapshot of v is made of.
func (r *record) sight(v view, config Config) sight {
	s := sight{
		now: v.now, cluster: v.cluster, members: v.members, head: v.head, demand: v.demand,
		idle:     map[raydemand.NodeID]time.Duration{},
		leaving:  map[raydemand.NodeID]bool{},
		refused:  map[raydemand.NodeID]raydemand.Bundle{},
		crashed:  map[string]bool{},
		breakers: r.breakers,
		coming:   r.shortage.coming,
		since:    r.reports.since,
		shapes:   r.shapes,
	}
	if v.live() {
		s.kept, s.owned = v.cluster.RequestResources, countedRequests(&v.cluster, r.owned, v.now)
	} else {
		s.blind, s.members = unknownDemand(v.stateErr), membership.Join(v.cluster, r.account)
	}
	if s.head != nil {
		s.refused[s.head.ID] = r.refusals.of(s.head, v.now)
	}
	for _, m := range s.members {
		if m.Node != nil {
			s.idle[m.Node.ID] = r.fresh.bound(v.now, m.Node.ID, max(m.Node.Idle, r.idle.idle(m.Node.ID)))
			s.leaving[m.Node.ID] = r.drains.leaving(m.Node.ID)
			s.refused[m.Node.ID] = r.refusals.of(m.Node, v.now)
		}
		s.crashed[m.Pod] = m.Dead() && r.waits.deadFor(m.Pod, v.now) >= config.DeadGrace
	}
	return s
}

// fingerprint is what counts as a change for the pace.
type fingerprint struct {
	Demand raydemand.Demand
	Pods   map[string]string
}

func (r *record) noteChange(v *view) {
	now := fingerprint{Demand: v.state.Demand, Pods: make(map[string]string, len(v.members))}
	for _, m := range v.members {
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
		r.seen, r.movedAt = now, v.now
	}
}

// note keeps the latest actions for the page; reports to Ray scale nothing, and would push the others out.
func (r *record) note(actions []decision.Action) {
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

// operatorBehind says why the operator has not carried out yet what stands in the RayCluster, or "". Then no further
// node is drained: one that the operator never deletes would stand drained for ever.
//
// The operator writes observedGeneration only together with another change of the status (v1.6.2, consistency.go), so
// a generation it has not reached counts only while pods are really missing.
func (r *record) operatorBehind(v view) string {
	counted := 0
	for _, m := range v.members {
		if m.Named && !m.Terminating && !m.Failed {
			return "the operator has not deleted " + m.Pod + " yet, which workersToDelete names"
		}
		if m.Counted() {
			counted++
		}
	}
	goal := 0
	for _, g := range v.cluster.Groups {
		goal += membership.GoalPods(g)
	}
	if v.cluster.ObservedGeneration < r.generation && counted < goal {
		return "the operator has not seen the last patch yet"
	}
	return ""
}

// patchBackoff slows the loop down after a patch that failed for another reason than a conflict, and counts conflicts in
// a row, after which the next look is not quite at once.
type patchBackoff struct {
	failures, conflicts int
	retryAt             time.Time
}

func (p *patchBackoff) fail(now time.Time) {
	p.retryAt = now.Add(min(500*time.Millisecond<<min(p.failures, 10), 30*time.Second))
	p.failures++
}

func (p *patchBackoff) resting(now time.Time) bool { return now.Before(p.retryAt) }

// view is one observation of one cluster.
type view struct {
	now time.Time
	// observed is how long both sides took to read, planned how long the first decision took.
	observed, planned time.Duration

	cluster nodepool.Cluster
	members []membership.Member
	mode    nodepool.Mode
	why     planner.Reason
	// state is valid when stateErr is nil; demand is its demand less what was just placed.
	state    raydemand.State
	stateErr error
	readAt   time.Time
	head     *raydemand.Node
	demand   raydemand.Demand
}

// live reports whether the GCS answered in this cycle, with a state that knows its own head.
func (v view) live() bool { return v.stateErr == nil }

// unknownDemand says why there is no state of Ray, for the groups' reasons.
func unknownDemand(err error) string {
	why := "Ray does not answer"
	switch {
	case errors.Is(err, errOff):
		why = "the mode is off"
	case errors.Is(err, errNoHead):
		why = "there is no head to ask"
	}
	return why + ", so nothing is known of what waits, and nothing is launched"
}
