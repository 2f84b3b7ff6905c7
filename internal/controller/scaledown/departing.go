package scaledown

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
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
			all = append(all, Removal{pod: m.Pod, group: m.Group, unit: unitOf(m.Group, m.Replica, m.Pod),
				reason: removedEvicted, always: true})
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
// A bad GPU ends no pod, so the deadline is wait from now.
func (d Drains) Going(
	v observe.View, wait time.Duration, settled func(observe.Member) bool,
) []DrainRequest {
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
			GivenBack: m.Going.Sign == departure.GivenBack, BadGPU: m.Going.Sign == departure.BadGPU,
			Message: "Heliostat: " + m.Going.Text(m.Worker.Node)}
		if w.Deadline.IsZero() && w.BadGPU {
			w.Deadline = v.Now.Add(wait)
		} else if w.Deadline.IsZero() {
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

// drainedPart is how many of a group's nodes may drain at a time because of bad GPUs: 1/drainedPart of them, and at
// least one.
const drainedPart = 20

// BoundBadGPUs lets only the workers of a few nodes of each group be drained because of bad GPUs, those with the oldest
// signs first. The others stay, and say so. Workers that drain already count, for whatever reason they do, until two
// deadlines after theirs. Without drain, or if the RayCluster is not managed, all stay. wait is the time from a drain
// to its deadline.
func (d Drains) BoundBadGPUs(v *observe.View, drain bool, wait time.Duration) {
	why := ""
	switch {
	case !drain:
		why = "--drain-bad-gpus is off"
	case v.Mode != nodepool.Managed:
		why = "the RayCluster is not managed"
	}
	stay := func(m observe.Member, why string) {
		notice := *m.Going
		notice.Stay(why)
		m.Worker.Going = &notice
	}
	units, leaving := map[string]map[string]bool{}, map[string]map[string]bool{}
	note := func(in map[string]map[string]bool, m observe.Member) {
		if in[m.Group] == nil {
			in[m.Group] = map[string]bool{}
		}
		in[m.Group][cmp.Or(m.Replica, m.Worker.Node)] = true
	}
	var bad []observe.Member
	for _, m := range v.Members {
		if m.Counted() && observe.Placed(m) {
			note(units, m)
		}
		isBad := m.Going != nil && m.Going.Sign == departure.BadGPU
		switch drains := m.Joined() && m.Node.Status == raydemand.Draining; {
		case isBad && why != "":
			stay(m, why)
		case drains:
			since := d.since(m.Node.ID, v.Now)
			if isBad && (m.Going.Certain || d.forBadGPU(m)) {
				notice := *m.Going
				notice.Certain, notice.Stays = true, ""
				m.Worker.Going = notice.Until(since.Add(wait)) // afterwards, nobody waits for its work
			}
			if v.Now.Sub(since) <= 3*wait {
				note(leaving, m)
			}
		case isBad && m.Goes() && !m.Joined():
			stay(m, "it has not joined")
		case isBad && m.Goes():
			bad = append(bad, m)
		}
	}
	slices.SortStableFunc(bad, func(a, b observe.Member) int { return a.Going.Since.Compare(b.Going.Since) })
	for _, m := range bad {
		switch most := max(1, len(units[m.Group])/drainedPart); {
		case leaving[m.Group][cmp.Or(m.Replica, m.Worker.Node)] || len(leaving[m.Group]) < most:
			note(leaving, m)
		case most == 1:
			stay(m, fmt.Sprintf("at most one node of group %s drains at a time", m.Group))
		default:
			stay(m, fmt.Sprintf("at most %d nodes of group %s drain at a time", most, m.Group))
		}
	}
}

// since returns since when a node drains, as far as this process knows.
func (d Drains) since(id raydemand.NodeID, now time.Time) time.Time {
	if entry := d[id]; entry != nil && entry.accepted {
		return entry.askedAt
	}
	return now
}

// forBadGPU reports whether a worker with a bad GPU drains because of it. An earlier process saw the sign earlier.
func (d Drains) forBadGPU(m observe.Member) bool {
	if entry := d[m.Node.ID]; entry != nil && !entry.found {
		return entry.badGPU
	}
	return m.Going.Stays == departure.TooNew
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
