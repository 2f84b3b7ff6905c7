package observe

import (
	"maps"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Use is what a node shows of its use.
type Use int

const (
	// Unused: nothing is in use.
	Unused Use = iota
	// InUse: something is in use, but no task or actor runs. A placement group reserves it, or work is being placed.
	InUse
	// Works: tasks or actors run.
	Works
)

// UseOf returns what a node shows.
func UseOf(n *raydemand.Node) Use {
	switch {
	case n.Status == raydemand.Idle:
		return Unused
	case raydemand.ReadActivity(n.Activity).Workers:
		return Works
	}
	return InUse
}

// unseen is how long Ray may be unreadable before nodes may have had another use in between. It is the age up to which
// a reading counts elsewhere too (MaxDataAge).
const unseen = 10 * time.Second

// UseClock measures for how long nodes have shown the same use without interruption. Its readings may miss short
// interruptions. Losing it only delays what waits for it.
type UseClock struct {
	nodes    map[raydemand.NodeID]useSince
	readings int       // how many there were
	read     time.Time // when the last reading was
}

type useSince struct {
	use     Use
	since   time.Time
	reading int // the last one that showed the node
}

// Observe adds one reading.
func (c *UseClock) Observe(now time.Time, nodes []raydemand.Node) {
	if c.nodes == nil || now.Sub(c.read) > unseen {
		c.nodes = make(map[raydemand.NodeID]useSince, len(nodes))
	}
	c.readings++
	for i := range nodes {
		n := &nodes[i]
		last, known := c.nodes[n.ID]
		if use := UseOf(n); !known || last.use != use {
			last = useSince{use: use, since: now}
		}
		last.reading = c.readings
		c.nodes[n.ID] = last
	}
	maps.DeleteFunc(c.nodes, func(_ raydemand.NodeID, u useSince) bool { return u.reading != c.readings })
	c.read = now
}

// Repeat notes a reading that shows the same as the last one.
func (c *UseClock) Repeat(now time.Time) { c.read = now }

// For returns for how long a node has shown its present use; zero for a node that was not in the last reading.
func (c *UseClock) For(now time.Time, id raydemand.NodeID) time.Duration {
	if shown, known := c.nodes[id]; known {
		return now.Sub(shown.since)
	}
	return 0
}
