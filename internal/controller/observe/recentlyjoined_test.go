package observe

import (
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

func TestTheIdleTimeOfARecentlyJoinedNodeBeginsWhenItIsFirstSeen(t *testing.T) {
	old, young := idleNode(nodeID("old"), false, time.Minute), idleNode(nodeID("young"), false, 20*time.Second)
	var n RecentlyJoined
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	n.Observe(start, []raydemand.Node{old})
	n.Observe(start.Add(time.Second), []raydemand.Node{old, young})
	n.Observe(start.Add(4*time.Second), []raydemand.Node{old, young})
	now := start.Add(4 * time.Second)
	if got := n.Bound(now, young.ID, young.Idle); got != 3*time.Second {
		t.Errorf("a node first seen 3 s ago counts as idle for %v", got)
	}
	if got := n.Bound(now, old.ID, old.Idle); got != time.Minute {
		t.Errorf("a node of the first reading, idle for a minute by Ray's account, counts as idle for %v", got)
	}
}

func TestANodeThatReturnsFromTheDeadIsANewcomer(t *testing.T) {
	node := idleNode(nodeID("node"), false, time.Minute)
	dead := node
	dead.Status = raydemand.Dead
	var n RecentlyJoined
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	n.Observe(start, []raydemand.Node{node})
	n.Observe(start.Add(time.Second), []raydemand.Node{dead})
	n.Observe(start.Add(2*time.Second), []raydemand.Node{node})
	if got := n.Bound(start.Add(2*time.Second), node.ID, node.Idle); got != 0 {
		t.Errorf("it counts as idle for %v", got)
	}
}
