package scaledown

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// DrainRequest is one drain to request.
type DrainRequest struct {
	Node     raydemand.Node
	Pod      string
	Group    string
	Replica  string
	Reason   raydemand.DrainReason
	Deadline time.Time
	Message  string
	// Going: the machine goes, or Ray moves the work, so this process does not enforce the deadline.
	Going bool
	// GivenBack: somebody asked for the worker's GPUs. BadGPU: it has a bad one. Its machine stays, so the drain can
	// wait.
	GivenBack, BadGPU bool
}

// DrainRequests returns the drains that the plan's terminations need. An idle drain is requested only of a node that
// this very reading shows IDLE; a busy node is drained, with a deadline, only above a lowered maximum. Neither is while
// Ray may just be placing work there, nor while that holds for another host of its replica.
func (r Rules) DrainRequests(v observe.View, plan planner.Plan) []DrainRequest {
	if len(plan.Terminate) == 0 {
		return nil
	}
	byPod := make(map[string]*observe.Member, len(v.Members))
	for i := range v.Members {
		byPod[v.Members[i].Pod] = &v.Members[i]
	}
	var all []DrainRequest
	early := map[string]bool{}
	for _, t := range plan.Terminate {
		m := byPod[t.Pod]
		if m == nil || !m.Counted() || !m.Joined() || !observe.Deletable(v.Cluster, m.Worker) ||
			!r.Drains.mayAsk(m.Node.ID, v.Now) {
			continue
		}
		w := DrainRequest{Node: *m.Node, Pod: m.Pod, Group: m.Group, Replica: m.Replica}
		switch {
		case m.Node.Status == raydemand.Idle:
			w.Reason = raydemand.DrainIdle
			w.Message = "Heliostat: " + t.Message
		case t.Busy && m.Node.Status == raydemand.Running && observe.AboveMaximum(v.Cluster, v.Members, m.Group):
			w.Reason, w.Deadline = raydemand.DrainPreemption, v.Now.Add(r.DrainDeadline)
			w.Message = fmt.Sprintf("Heliostat: group %s is above its maximum", m.Group)
		default:
			continue
		}
		all = append(all, w)
		if !r.Settled(*m) {
			early[unitOf(m.Group, m.Replica, m.Pod)] = true
		}
	}
	return slices.DeleteFunc(all, func(w DrainRequest) bool { return early[unitOf(w.Group, w.Replica, w.Pod)] })
}

// answerWait is how long a drain whose answer was lost counts as accepted. DRAINING shows within a second.
const answerWait = 5 * time.Second

// firstRetry and lastRetry bound the pause after a refused drain of a node that still looks idle. It doubles, because
// even a refused drain marks the node's actors as preempted (docs/reference/facts.md#drain-refusal).
const (
	firstRetry = 30 * time.Second
	lastRetry  = 10 * time.Minute
)

// drainState is one drain that was requested, or found under way.
type drainState struct {
	Pod      string
	askedAt  time.Time
	accepted bool
	// answered is false while the result of the call is unknown: it may have been accepted.
	answered bool
	// Deadline is when a busy node above a lowered maximum is deleted by name; zero if it has none, see KeepDeadlines.
	// Ray never enforces it (docs/reference/facts.md#drain-deadline).
	Deadline time.Time
	// badGPU: it was requested because of a bad GPU. found: it was found under way, and may be, too.
	badGPU, found bool
	// idle: the node had no work when the drain was requested.
	idle     bool
	refusals int
	retryAt  time.Time
}

// Drains remembers, for safety, which nodes were asked to leave, so that they serve no demand before the GCS reports
// DRAINING, and which refused recently. Losing it is safe: a DRAINING or DEAD node is recognized by its status.
type Drains map[raydemand.NodeID]*drainState

// Observe adds drains found under way, and forgets those whose node is gone or stays.
func (d Drains) Observe(now time.Time, nodes []raydemand.Node, timeout time.Duration) {
	for i := range nodes {
		n := &nodes[i]
		known := d[n.ID]
		switch n.Status {
		case raydemand.Draining:
			if known == nil {
				d[n.ID] = &drainState{Pod: n.Instance, askedAt: now, accepted: true, answered: true, found: true}
			} else {
				known.accepted, known.answered = true, true
			}
		case raydemand.Running, raydemand.Idle, raydemand.Unspecified:
			switch {
			case known == nil:
			case known.failed(now, timeout):
				known.Refuse(now)
			case known.answered && !known.accepted && workedSince(n, known.askedAt, now):
				delete(d, n.ID) // Ray was right to refuse; the idle timeout restarts by itself
			}
		}
	}
	maps.DeleteFunc(d, func(id raydemand.NodeID, entry *drainState) bool {
		return !entry.accepted && !slices.ContainsFunc(nodes, func(n raydemand.Node) bool { return n.ID == id })
	})
}

// KeepDeadlines lets work on a draining node continue for wait while its group is above its maximum. In a group within
// its maximum, and while nothing may be written, a drain has no deadline. After the maximum is lowered again, the
// cluster is unfrozen or this process restarts, the whole time starts again, because the work no longer knows the old
// deadline.
func (d Drains) KeepDeadlines(v observe.View, wait time.Duration) {
	if len(d) == 0 {
		return
	}
	above := podsAboveMaximum(v.Cluster, v.Members)
	for _, entry := range d {
		switch {
		case v.Mode != nodepool.Managed || !above[entry.Pod]:
			entry.Deadline = time.Time{}
		case v.Live() && entry.accepted && entry.Deadline.IsZero():
			entry.Deadline = v.Now.Add(wait)
		}
	}
}

// podsAboveMaximum returns the pods of groups that have more pods than their maximum allows.
func podsAboveMaximum(cluster nodepool.Cluster, members []observe.Member) map[string]bool {
	groups := map[string]bool{}
	for _, g := range cluster.Groups {
		groups[g.Name] = observe.AboveMaximum(cluster, members, g.Name)
	}
	pods := map[string]bool{}
	for _, m := range members {
		if groups[m.Group] {
			pods[m.Pod] = true
		}
	}
	return pods
}

// Prune forgets the drains of pods that are gone, and of earlier nodes of pods in which another one lives: a later
// reading that leaves out the living node must not count as the end of that drain.
func (d Drains) Prune(members []observe.Member) {
	if len(d) == 0 {
		return
	}
	pods := make(map[string]observe.Member, len(members))
	for _, m := range members {
		pods[m.Pod] = m
	}
	maps.DeleteFunc(d, func(id raydemand.NodeID, entry *drainState) bool {
		m, exists := pods[entry.Pod]
		return !exists || m.Joined() && m.Node.ID != id
	})
}

// failed reports whether a drain that seemed under way cannot be: the node has stayed for too long.
func (d *drainState) failed(now time.Time, timeout time.Duration) bool {
	if d.accepted {
		return now.Sub(d.askedAt) > timeout
	}
	return !d.answered && now.Sub(d.askedAt) > answerWait
}

// workedSince reports whether the node has had work since then, according to Ray.
func workedSince(n *raydemand.Node, then, now time.Time) bool {
	return n.Status == raydemand.Running || now.Add(-n.Idle).After(then)
}

// Accept notes that Ray accepted the drain.
func (d *drainState) Accept() { d.accepted, d.answered = true, true }

func (d *drainState) Refuse(now time.Time) {
	pause := firstRetry << min(d.refusals, 8)
	d.refusals++
	d.accepted, d.answered = false, true
	d.Deadline = time.Time{}
	d.retryAt = now.Add(min(pause, lastRetry))
}

// Begin notes a drain right before the call, because its answer may never come.
func (d Drains) Begin(w DrainRequest, now time.Time) *drainState {
	entry := d[w.Node.ID]
	if entry == nil {
		entry = &drainState{Pod: w.Pod}
		d[w.Node.ID] = entry
	}
	entry.askedAt, entry.Deadline = now, time.Time{}
	if !w.Going {
		entry.Deadline = w.Deadline
	}
	entry.idle = w.Reason == raydemand.DrainIdle
	entry.accepted, entry.answered = false, false
	entry.badGPU, entry.found = w.BadGPU, false
	return entry
}

// Leaving reports whether the node was asked to drain and did not refuse.
func (d Drains) Leaving(id raydemand.NodeID) bool {
	entry := d[id]
	return entry != nil && (entry.accepted || !entry.answered)
}

// EndsIdle reports whether Ray accepted to drain the node when it was idle: it ends and gets no work before.
func (d Drains) EndsIdle(id raydemand.NodeID) bool {
	entry := d[id]
	return entry != nil && entry.accepted && entry.idle
}

// AcceptedFor returns for how long the node has been drained; 0 if Ray has accepted no drain of it, or if the drain has
// a deadline of its own, because the group is above its maximum.
func (d Drains) AcceptedFor(id raydemand.NodeID, now time.Time) time.Duration {
	if entry := d[id]; entry != nil && entry.accepted && entry.Deadline.IsZero() {
		return now.Sub(entry.askedAt)
	}
	return 0
}

// acceptedPod reports whether Ray accepted the drain of the pod's node. The GCS forgets dead nodes some day; Drains
// does not.
func (d Drains) acceptedPod(pod string) bool {
	for _, entry := range d {
		if entry.Pod == pod && entry.accepted {
			return true
		}
	}
	return false
}

// mayAsk reports whether the node may be asked to drain now.
func (d Drains) mayAsk(id raydemand.NodeID, now time.Time) bool {
	return !d.Leaving(id) && (d[id] == nil || !now.Before(d[id].retryAt))
}

// overdue reports whether the node's deadline has passed.
func (d Drains) overdue(id raydemand.NodeID, now time.Time) bool {
	entry := d[id]
	return entry != nil && entry.accepted && !entry.Deadline.IsZero() && !now.Before(entry.Deadline)
}

// Open counts the drains under way.
func (d Drains) Open() int {
	open := 0
	for id := range d {
		if d.Leaving(id) {
			open++
		}
	}
	return open
}
