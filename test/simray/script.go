package simray

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func idOf(seed string) (id raydemand.NodeID) {
	sum := sha256.Sum256([]byte(seed))
	copy(id[:], sum[:])
	return id
}

// AddNode adds a raylet and returns its node id.
func (h *Head) AddNode(spec Node) (id raydemand.NodeID) {
	h.look(func(c *cluster, now time.Time) { id = c.join(spec, now).id })
	return id
}

// KillNode ends a raylet without a drain, like a machine failure that the GCS has detected.
func (h *Head) KillNode(id raydemand.NodeID) {
	h.look(func(c *cluster, now time.Time) {
		if n := c.find(id[:]); n != nil {
			c.die(n, raypb.NodeDeathInfo_UNEXPECTED_TERMINATION,
				"health check failed due to missing too many heartbeats", now)
		}
	})
}

// Forget removes dead nodes from the state, as the GCS does when its cache of dead nodes is full.
func (h *Head) Forget() {
	h.look(func(c *cluster, _ time.Time) {
		c.nodes = slices.DeleteFunc(c.nodes, func(n *node) bool { return n.dead })
	})
}

// SetIdle sets how long a node without work has been idle.
func (h *Head) SetIdle(id raydemand.NodeID, idle time.Duration) {
	h.look(func(c *cluster, now time.Time) {
		if n := c.find(id[:]); n != nil && n.running == 0 {
			n.held, n.idleSince = "", now.Add(-idle)
		}
	})
}

// SetBusy makes a node busy without submitted work, for example because of an object copy. SetIdle ends it.
func (h *Head) SetBusy(id raydemand.NodeID, why string) {
	h.look(func(c *cluster, _ time.Time) {
		if n := c.find(id[:]); n != nil {
			n.held, n.activity, n.encoded = why, []string{why}, nil
		}
	})
}

// Submit adds a task or an actor.
func (h *Head) Submit(task Task) WorkID {
	return h.submit(&work{task: task, parts: []part{{bundle: task.Bundle.Clone(), selector: task.Selectors}}})
}

// SubmitGang adds a placement group.
func (h *Head) SubmitGang(gang Gang) WorkID {
	w := &work{gang: gang}
	for i, bundle := range gang.Bundles {
		p := part{bundle: bundle.Clone()}
		if i < len(gang.Selectors) && len(gang.Selectors[i]) > 0 {
			p.selector = gang.Selectors[i : i+1]
		}
		w.parts = append(w.parts, p)
	}
	return h.submit(w)
}

func (h *Head) submit(w *work) WorkID {
	h.look(func(c *cluster, now time.Time) {
		c.nextWork++
		w.id, w.submitted = c.nextWork, now
		id := c.newID("work")
		w.actorID = id
		if len(w.gang.Bundles) > 0 {
			// 18 bytes, like Ray's placement group ids: 14 random bytes and 4 of the job.
			w.gangID = hex.EncodeToString(id[:14]) + "01000000"
		}
		c.work = append(c.work, w)
	})
	return w.id
}

// Cancel ends pending or running work.
func (h *Head) Cancel(id WorkID) {
	h.look(func(c *cluster, now time.Time) {
		for _, w := range c.work {
			if w.id == id {
				c.finish(w, now)
			}
		}
	})
}

// Counts holds how much work is pending and running, how much of what runs ends by itself, and how many tasks, actors
// and bundles were lost with dead nodes.
type Counts struct{ Waiting, Running, Ending, Lost int }

// Counts returns the counts of the current session.
func (h *Head) Counts() (counts Counts) {
	h.look(func(c *cluster, _ time.Time) {
		counts.Lost = c.lost
		for _, w := range c.work {
			switch {
			case w.over:
			case w.waiting():
				counts.Waiting++
			default:
				counts.Running++
				if !w.ends.IsZero() {
					counts.Ending++
				}
			}
		}
	})
	return counts
}

// Preempted reports whether a drain has marked the actor as preempted. A rejected drain marks actors too.
func (h *Head) Preempted(id WorkID) (preempted bool) {
	h.look(func(c *cluster, _ time.Time) {
		for _, w := range c.work {
			preempted = preempted || w.id == id && w.preempted
		}
	})
	return preempted
}

// Report returns the last report of an autoscaler, or nil, and the number of report calls.
func (h *Head) Report() (report *autoscalerpb.AutoscalingState, calls int) {
	h.look(func(c *cluster, _ time.Time) { report, calls = c.report, c.reports })
	return report, calls
}

// State returns the true state, whatever the faults make of it in an answer.
func (h *Head) State() (state *autoscalerpb.ClusterResourceState) {
	h.look(func(c *cluster, now time.Time) { state = c.state(now) })
	return state
}

// Session returns the name of the current Ray session.
func (h *Head) Session() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cluster.session
}

// ClusterID returns the cluster id in hex, which clients can send as ray_cluster_id.
func (h *Head) ClusterID() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cluster.clusterID
}
