package controller

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const (
	// placedShown is how long after a node has joined or become idle Ray shows the work that it places there in that
	// moment: a second for the report of the node, and more on busy machines. Until its first report, a node counts as
	// running.
	placedShown = 3 * time.Second
	// unsteady is how long work may come and go on a node before the node is drained while something runs there. It is
	// a quarter of the warning that spot machines of AWS get.
	unsteady = 30 * time.Second
)

// Departing returns the drains of nodes that are about to lose their machine, and of which Ray has shown what it placed
// there.
func (m *memory) Departing(v observe.View) []scaledown.DrainRequest {
	return m.drains.Going(v, func(member observe.Member) bool { return m.settled(v.Now, member) })
}

// settled reports whether Ray has shown what it placed on a node whose machine goes, so that a drain ends no node on
// which work is just being placed. Something in use proves nothing for a while: drained soon after it had joined, or
// after its last work had ended, such a node ended at once (docs/reference/facts.md#drain-race).
func (m *memory) settled(now time.Time, member observe.Member) bool {
	if m.joined.Bound(now, member.Node.ID, placedShown) < placedShown {
		return false
	}
	shown := m.use.For(now, member.Node.ID)
	switch observe.UseOf(member.Node) {
	case observe.Unused:
		return m.idleFor(now, member.Node) >= placedShown
	case observe.Works:
		return shown >= placedShown || m.clocks.GoingFor(member.Pod, now) >= unsteady
	}
	return shown >= raydemand.ProcessStart
}

// idleFor returns how long a node has been unused and could have taken work.
func (m *memory) idleFor(now time.Time, n *raydemand.Node) time.Duration {
	return m.joined.Bound(now, n.ID, max(n.Idle, m.idle.Idle(n.ID)))
}
