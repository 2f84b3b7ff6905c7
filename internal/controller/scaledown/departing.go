package scaledown

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Evicted returns the pods that somebody else ends and that workersToDelete is to name: the operator replaces such a
// pod only once it is gone, and nobody may need the replacement. launch counts the pods to launch, by group.
//
// A pod that is named while another is launched leaves replicas as they are, and the operator creates the replacement
// at once. A pod that is named without a launch lowers replicas. That is only safe with in-tree autoscaling: if the pod
// ends first, replicas would ask for one less than there are, and the operator would otherwise delete any of them
// (docs/reference/facts.md#ending-pods). There the operator replaces it, and the replacement leaves when it is idle.
func Evicted(v observe.View, launch map[string]int) []Removal {
	open, counted := map[string]int{}, map[string]int{}
	for _, m := range v.Members {
		if m.Counted() {
			counted[m.Group]++
		}
	}
	for _, g := range v.Cluster.Groups {
		open[g.Name] = observe.GoalPods(g) - counted[g.Name]
		if !v.Cluster.InTreeAutoscaling {
			open[g.Name] = min(open[g.Name], launch[g.Name])
		}
	}
	var all []Removal
	for _, m := range v.Members {
		if m.Replaced() && open[m.Group] > 0 && observe.Deletable(v.Cluster, m.Worker) {
			open[m.Group]--
			all = append(all, Removal{pod: m.Pod, group: m.Group, reason: removedEvicted, always: true})
		}
	}
	return all
}

// Going returns the drains of nodes whose machine is about to go, with work or not: Ray places nothing new there,
// Serve moves its replicas and Train saves its state. It takes no pod away: the node ends when its work does, or with
// its machine. The deadline is that of the sign, else the pod's grace period from now.
//
// A node without work ends as soon as it drains, with all work that Ray is just placing there, and an actor without
// restarts is then lost (docs/reference/facts.md#drain-race). So only settled nodes are drained: those of which Ray
// shows what it has placed there.
func (d Drains) Going(v observe.View, settled func(observe.Member) bool) []DrainRequest {
	var all []DrainRequest
	for _, m := range v.Members {
		if !m.Goes() || !m.Joined() || m.Node.Status == raydemand.Draining || !d.mayAsk(m.Node.ID, v.Now) {
			continue
		}
		if !settled(m) {
			continue
		}
		w := DrainRequest{Node: *m.Node, Pod: m.Pod, Group: m.Group, Replica: m.Replica, Going: true,
			Reason: raydemand.DrainPreemption, Deadline: m.Going.Deadline,
			GivenBack: m.Going.Sign == departure.GivenBack,
			Message:   "Heliostat: " + m.Going.Text(m.Worker.Node)}
		if w.Deadline.IsZero() {
			w.Deadline = v.Now.Add(m.Grace)
		}
		w.Deadline = later(w.Deadline, v.Now)
		if w.GivenBack && v.Cluster.GiveBack != nil {
			w.Deadline = later(w.Deadline, v.Now.Add(v.Cluster.GiveBack.LeastDrain()))
		}
		all = append(all, w)
	}
	return all
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
