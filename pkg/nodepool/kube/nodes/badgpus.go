package nodes

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/departure"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// signReturns is how long a sign of a bad GPU that is gone is remembered. Workers that come meanwhile came later than
// the sign: otherwise one that comes and goes would drain a worker each time.
const signReturns = 30 * time.Minute

// badGPU is a sign of a bad GPU. This process has seen it since then without interruption, and with shorter gaps than
// signReturns since first.
type badGPU struct {
	sharing.BadGPU
	first, since time.Time
	// gone is when it was seen to be gone; zero while it is there.
	gone time.Time
}

func (a badGPU) same(b badGPU) bool { return a.Key() == b.Key() }

// badGPUs are the signs of bad GPUs in a view. It never changes.
type badGPUs struct {
	// byNode has the most severe ones of each node first.
	byNode map[string][]badGPU
	// gone are those that may return.
	gone map[string][]badGPU
	// tooMany is why nothing follows from them; empty if something does.
	tooMany string
}

// of returns the signs of nodes, which have those of f since the same time, and lets plans place nothing on nodes of
// which all GPUs are bad.
func (f badGPUs) of(nodes []landing.Node, now time.Time) badGPUs {
	next := badGPUs{byNode: map[string][]badGPU{}, gone: map[string][]badGPU{}}
	for i := range nodes {
		node := &nodes[i]
		var list []badGPU
		if node.GPUs != nil {
			for _, seen := range node.GPUs.Bad {
				list = append(list, badGPU{BadGPU: seen, first: now, since: now})
			}
		}
		for _, known := range slices.Concat(f.byNode[node.Name], f.gone[node.Name]) {
			isGone := true
			for at := range list {
				if list[at].same(known) {
					isGone = false
					if known.gone.IsZero() {
						list[at].since = known.since
					}
					if known.gone.IsZero() || now.Sub(known.gone) < signReturns {
						list[at].first = known.first
					}
				}
			}
			if known.gone.IsZero() {
				known.gone = now
			}
			if isGone && now.Sub(known.gone) < signReturns {
				next.gone[node.Name] = append(next.gone[node.Name], known)
			}
		}
		if len(list) == 0 {
			continue
		}
		slices.SortStableFunc(list, func(a, b badGPU) int { return cmp.Compare(b.Severity, a.Severity) })
		next.byNode[node.Name] = list
	}
	next.tooMany = landing.LeaveOutBadGPUs(nodes)
	return next
}

// notice returns what the signs of a node mean for a worker there, or nil.
func (f badGPUs) notice(cluster *nodepool.Cluster, w *nodepool.Worker, now time.Time) (found *departure.Notice) {
	if len(f.byNode[w.Node]) == 0 {
		return nil
	}
	group, known := cluster.Group(w.Group)
	node := cluster.Stock.Node(w.Node)
	if !known || node == nil || node.GPUs == nil || !usesGPUs(group, w, node) {
		return nil
	}
	for _, bad := range f.byNode[w.Node] {
		if bad.Severity < sharing.Drain {
			break
		}
		has := holds(group, w, node, bad.BadGPU)
		if has == no {
			continue
		}
		notice := departure.Of(departure.BadGPU, bad.Text(w.Node))
		notice.Since = bad.since
		lasted := now.Sub(bad.since)
		switch {
		case f.tooMany != "":
			notice.Stay(f.tooMany)
		case has == unknown:
			notice.Stay("nothing shows which GPUs of the node the worker has")
		case w.ScheduledAt.After(bad.first.Add(settles)):
			notice.Stay("the worker came later, and so could another one") // as in cameAfter
		case bad.Severity < sharing.Replace && lasted < departure.BadGPULasts:
			notice.Stay(departure.TooNew)
		}
		found = departure.Earlier(found, notice)
	}
	return found
}

// usesGPUs reports whether a worker has GPUs of its node.
func usesGPUs(group *nodepool.WorkerGroup, w *nodepool.Worker, node *landing.Node) bool {
	for name := range node.GPUs.Units {
		if group.Pod.Requests[name] > 0 {
			return true
		}
	}
	return len(w.GPUs) > 0 || len(group.Pod.ClaimTemplates) > 0
}

type answer int

const (
	no answer = iota
	unknown
	yes
)

// holds returns whether a worker has a GPU that is bad. It certainly has one if it has more GPUs than are healthy.
// Otherwise its pod must name its GPUs.
func holds(group *nodepool.WorkerGroup, w *nodepool.Worker, node *landing.Node, bad sharing.BadGPU) answer {
	if bad.WholeNode() {
		return yes
	}
	for name := range node.GPUs.Units {
		// With 0, the device plugin is not running. If all GPUs are left out of plans, none is usable.
		if node.GPUs.AllBad() == "" && node.Allocatable[name] > 0 && group.Pod.Requests[name] > node.Usable(name) {
			return yes
		}
	}
	named := len(w.GPUs) > 0
	for id, healthy := range w.GPUs {
		switch whole := strings.HasPrefix(id, "GPU-"); {
		case bad.Is(id), bad.UUID == "" && bad.Device == "" && !healthy:
			return yes
		case bad.UUID != "" && whole, bad.Device != "" && strings.Contains(id, "/"+sharing.DevicePrefix),
			bad.UUID == "" && bad.Device == "":
		default:
			named = false // a part of a card, whose name does not say which one it is of
		}
	}
	if named {
		return no
	}
	return unknown
}
