package memory

import (
	"time"

	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/internal/controller/reduction"
	"heliostat.dev/heliostat/pkg/raydemand"
)

const (
	// Placed is how long after a node has joined or become idle Ray shows the work that it places there in that moment:
	// a second for the report of the node, and more on busy machines. Until its first report, a node counts as running.
	Placed = 3 * time.Second
	// Unsteady is how long work may come and go on a node before the node is drained while something runs there. It is
	// a quarter of the warning that spot machines of AWS get.
	Unsteady = 30 * time.Second
)

// Departing returns the drains of nodes that are about to lose their machine, and of which Ray has shown what it placed
// there.
func (m *Memory) Departing(v observation.View) []reduction.DrainRequest {
	return m.drains.Going(v, func(member membership.Member) bool { return m.settled(v.Now, member) })
}

// settled reports whether Ray has shown what it placed on a node whose machine goes, so that a drain ends no node on
// which work is just being placed. Something in use proves nothing for a while: drained soon after it had joined, or
// after its last work had ended, such a node ended at once (docs/reference/facts.md#drain-race).
func (m *Memory) settled(now time.Time, member membership.Member) bool {
	if m.joined.Bound(now, member.Node.ID, Placed) < Placed {
		return false
	}
	shown := m.use.For(now, member.Node.ID)
	switch observation.UseOf(member.Node) {
	case observation.Unused:
		return m.idleFor(now, member.Node) >= Placed
	case observation.Works:
		return shown >= Placed || m.clocks.GoingFor(member.Pod, now) >= Unsteady
	}
	return shown >= raydemand.ProcessStart
}

// idleFor returns how long a node has been unused and could have taken work.
func (m *Memory) idleFor(now time.Time, n *raydemand.Node) time.Duration {
	return m.joined.Bound(now, n.ID, max(n.Idle, m.idle.Idle(n.ID)))
}
