package scaledown

import (
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// freshListsNeeded is how many equal fresh lists end the doubt about a sudden drop; freshListPause keeps them apart by
// more than the second in which the GCS renews its data.
const (
	freshListsNeeded = 2
	freshListPause   = 1100 * time.Millisecond
)

// DropGuard doubts a sudden drop in what is observed: a truncated list, a cache that starts over, a GCS that lost its
// nodes. When two or more, and more than half, of the pods or of the Ray nodes vanish between two readings and
// Heliostat did not remove them, reductions stop until two fresh lists confirm the lower number
// (docs/design/0001-the-loop.md).
type DropGuard struct {
	pods  map[string]bool  // the pods of the last reading, and whether replicas counts them
	nodes []raydemand.Node // those of the last reading
	// ending are the nodes that were named, drained or are in pods that terminate. Ray notices seconds after the pod
	// is gone, and then nothing else shows that the node was ending.
	ending map[raydemand.NodeID]bool

	// What is missing while in doubt, how many fresh lists confirmed it, and when the next list counts.
	missedPods  []string
	missedNodes []raydemand.NodeID
	freshLists  int
	nextListAt  time.Time
	Message     string
}

// Observe adds one reading. Whatever was named, drained or is terminating may vanish.
func (g *DropGuard) Observe(
	now time.Time,
	cluster nodepool.Cluster,
	members []observe.Member,
	nodes []raydemand.Node,
	leaving func(raydemand.NodeID) bool,
) {
	pods, going := make(map[string]bool, len(members)), map[string]bool{}
	for i := range cluster.Groups {
		for _, pod := range cluster.Groups[i].WorkersToDelete {
			going[pod] = true
		}
	}
	for _, m := range members {
		pods[m.Pod] = m.Counted()
		if !m.Counted() {
			going[m.Pod] = true
		}
	}
	alive := make(map[raydemand.NodeID]string, len(nodes))
	for i := range nodes {
		if n := &nodes[i]; n.Status != raydemand.Dead {
			alive[n.ID] = n.Instance
		}
	}
	lostPods := g.lostPods(pods, going)
	lostNodes, before := g.lostNodes(alive, going, leaving)
	ending := map[raydemand.NodeID]bool{}
	for id, pod := range alive {
		if going[pod] || leaving(id) || g.ending[id] && !pods[pod] {
			ending[id] = true
		}
	}
	switch {
	case manyOf(len(lostPods), len(g.pods)) || manyOf(len(lostNodes), before):
		g.missedPods, g.missedNodes, g.freshLists, g.nextListAt = lostPods, lostNodes, 0, now.Add(freshListPause)
		g.Message = fmt.Sprintf(
			"%d of %d worker pods and %d of %d Ray nodes vanished at once; no worker is removed until two fresh "+
				"lists confirm it",
			len(lostPods),
			len(g.pods),
			len(lostNodes),
			before,
		)
	case g.Doubts() && g.allBack(pods, alive):
		g.clear()
	}
	g.pods, g.nodes, g.ending = pods, nodes, ending
}

func manyOf(lost, all int) bool { return lost >= 2 && 2*lost > all }

func (g *DropGuard) lostPods(now, going map[string]bool) []string {
	var lost []string
	for pod, counted := range g.pods {
		if _, seen := now[pod]; counted && !seen && !going[pod] {
			lost = append(lost, pod)
		}
	}
	return lost
}

// lostNodes returns which living nodes of the last reading are gone, and how many there were.
func (g *DropGuard) lostNodes(
	alive map[raydemand.NodeID]string, going map[string]bool, leaving func(raydemand.NodeID) bool,
) (lost []raydemand.NodeID, before int) {
	for i := range g.nodes {
		n := &g.nodes[i]
		if n.Status == raydemand.Dead {
			continue
		}
		before++
		if _, seen := alive[n.ID]; !seen && !going[n.Instance] && !leaving(n.ID) && !g.ending[n.ID] {
			lost = append(lost, n.ID)
		}
	}
	return lost, before
}

func (g *DropGuard) allBack(pods map[string]bool, alive map[raydemand.NodeID]string) bool {
	return !slices.ContainsFunc(g.missedPods, func(pod string) bool { _, seen := pods[pod]; return !seen }) &&
		!slices.ContainsFunc(g.missedNodes, func(id raydemand.NodeID) bool { _, seen := alive[id]; return !seen })
}

// Doubts reports whether reductions are stopped.
func (g *DropGuard) Doubts() bool { return g.Message != "" }

// WantsFreshList reports whether a fresh list read now would count.
func (g *DropGuard) WantsFreshList(now time.Time) bool {
	return g.Doubts() && !now.Before(g.nextListAt)
}

// NoteFreshList notes that a fresh list was read and showed no further drop.
func (g *DropGuard) NoteFreshList(now time.Time) {
	g.freshLists++
	g.nextListAt = now.Add(freshListPause)
	if g.freshLists >= freshListsNeeded {
		g.clear()
	}
}

func (g *DropGuard) clear() {
	g.missedPods, g.missedNodes, g.freshLists, g.Message = nil, nil, 0, ""
}
