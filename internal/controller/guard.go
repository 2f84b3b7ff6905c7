package controller

import (
	"fmt"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// looksNeeded is how many equal fresh lists end the doubt about a sudden drop; lookPause keeps them apart by more than the
// second in which the GCS renews its data.
const (
	looksNeeded = 2
	lookPause   = 1100 * time.Millisecond
)

// dropGuard doubts a sudden drop in what is seen: a list cut short, a cache that starts over, a GCS that lost its nodes.
// When more than half of the pods, or of the Ray nodes, vanish between two readings without our doing, reductions stop
// until the lower number was seen twice in lists read afresh (design.md §6.2).
type dropGuard struct {
	pods, nodes map[string]bool // what the last reading showed, less what was on its way out
	// What is missed while in doubt, how often its absence was confirmed, and when the next look counts.
	missedPods, missedNodes map[string]bool
	looks                   int
	lookAt                  time.Time
	message                 string
}

// observe takes one reading in.
func (g *dropGuard) observe(now time.Time, members []member, nodes []raydemand.Node, leaving func(raydemand.NodeID) bool) {
	pods := make(map[string]bool, len(members))
	leavingPods := make(map[string]bool)
	for _, m := range members {
		if m.counted() {
			pods[m.Pod] = true
		} else {
			leavingPods[m.Pod] = true
		}
	}
	alive, staying := map[string]bool{}, map[string]bool{}
	for _, n := range nodes {
		if n.Status == raydemand.Dead {
			continue
		}
		alive[n.ID.String()] = true
		if n.Status != raydemand.Draining && !leaving(n.ID) && !leavingPods[n.Instance] {
			staying[n.ID.String()] = true
		}
	}
	// A pod that is named or terminating still exists: it vanished from the count, not from sight.
	lostPods := vanished(g.pods, pods, leavingPods)
	lostNodes := vanished(g.nodes, alive, nil)
	if 2*len(lostPods) > len(g.pods) || 2*len(lostNodes) > len(g.nodes) {
		g.missedPods, g.missedNodes = lostPods, lostNodes
		g.looks, g.lookAt = 0, now.Add(lookPause)
		g.message = fmt.Sprintf("%d of %d worker pods and %d of %d Ray nodes vanished at once; nothing is taken away until fresh lists confirm it twice",
			len(lostPods), len(g.pods), len(lostNodes), len(g.nodes))
	} else if g.doubts() && len(vanished(g.missedPods, pods, leavingPods)) == 0 && len(vanished(g.missedNodes, alive, nil)) == 0 {
		g.clear() // all of it is back
	}
	g.pods, g.nodes = pods, staying
}

// doubts reports whether reductions are stopped.
func (g *dropGuard) doubts() bool { return g.message != "" }

// wantsLook reports whether a fresh list read now would count.
func (g *dropGuard) wantsLook(now time.Time) bool { return g.doubts() && !now.Before(g.lookAt) }

// looked notes that a fresh list was read and showed no further drop.
func (g *dropGuard) looked(now time.Time) {
	g.looks++
	g.lookAt = now.Add(lookPause)
	if g.looks >= looksNeeded {
		g.clear()
	}
}

func (g *dropGuard) clear() {
	g.missedPods, g.missedNodes, g.looks, g.message = nil, nil, 0, ""
}

// vanished returns the names of before that are in neither set.
func vanished(before, now, excused map[string]bool) map[string]bool {
	lost := map[string]bool{}
	for name := range before {
		if !now[name] && !excused[name] {
			lost[name] = true
		}
	}
	return lost
}
