package simray

import (
	"slices"
	"time"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/api/proto/raypb"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// advance ends all work that is due until now, in order of time. After each end, it places pending work and lets idle
// drained nodes terminate.
func (c *cluster) advance(now time.Time) {
	for {
		next := c.nextEnd(now)
		at := now
		if next != nil {
			at = next.ends
			c.finish(next, at)
		}
		c.leave(at)
		c.place(at)
		if next == nil {
			break
		}
	}
	c.work = slices.DeleteFunc(c.work, func(w *work) bool { return w.over })
}

func (c *cluster) nextEnd(now time.Time) *work {
	var next *work
	for _, w := range c.work {
		if w.over || w.ends.IsZero() || w.ends.After(now) {
			continue
		}
		if next == nil || w.ends.Before(next.ends) {
			next = w
		}
	}
	return next
}

// finish releases the resources of the work.
func (c *cluster) finish(w *work, at time.Time) {
	w.over = true
	for i := range w.parts {
		c.release(&w.parts[i], at)
	}
}

func (c *cluster) release(p *part, at time.Time) {
	n := p.on
	if n == nil {
		return
	}
	p.on = nil
	n.free.Add(p.bundle)
	n.encoded = nil
	n.running--
	if !n.busy() {
		n.idleSince = at
	}
}

// leave terminates drained nodes that are idle.
func (c *cluster) leave(at time.Time) {
	for _, n := range c.nodes {
		if n.dead || n.drain == autoscalerpb.DrainNodeReason_DRAIN_NODE_REASON_UNSPECIFIED || n.busy() {
			continue
		}
		reason := raypb.NodeDeathInfo_AUTOSCALER_DRAIN_IDLE
		if n.drain == autoscalerpb.DrainNodeReason_DRAIN_NODE_REASON_PREEMPTION {
			reason = raypb.NodeDeathInfo_AUTOSCALER_DRAIN_PREEMPTED
		}
		c.die(n, reason, n.message, at)
	}
}

// place places pending work in order of arrival. Work that does not fit does not block later work.
func (c *cluster) place(at time.Time) {
	for _, w := range c.work {
		if w.over || !w.waiting() {
			continue
		}
		chosen := c.choose(w)
		if chosen == nil {
			continue
		}
		for i, n := range chosen {
			if w.parts[i].on != nil {
				continue
			}
			w.parts[i].on = n
			n.free.Take(w.parts[i].bundle)
			n.running++
			n.activity = []string{"Busy workers on node."}
			n.encoded = nil
		}
		if runs := w.runs(); runs > 0 {
			w.ends = at.Add(runs)
		}
	}
}

func (w *work) runs() time.Duration {
	if w.gangID != "" {
		return w.gang.Runs
	}
	return w.task.Runs
}

// choose returns a node for every part of the work, including parts that are placed, or nil. It changes nothing.
func (c *cluster) choose(w *work) []*node {
	if w.gangID == "" {
		if n := c.fit(w.parts[0], c.open(w.parts[0]), nil); n != nil {
			return []*node{n}
		}
		return nil
	}
	if label := w.gang.TopologyLabel; label != "" {
		for _, value := range c.labelValues(label) {
			if chosen := c.chooseAmong(w, func(n *node) bool { return n.Labels[label] == value }); chosen != nil {
				return chosen
			}
		}
		return nil
	}
	if w.gang.Strategy == raydemand.StrictPack || w.gang.Strategy == raydemand.Pack {
		for _, one := range c.nodes {
			if chosen := c.chooseAmong(w, func(n *node) bool { return n == one }); chosen != nil {
				return chosen
			}
		}
		if w.gang.Strategy == raydemand.StrictPack {
			return nil
		}
	}
	return c.chooseAmong(w, func(*node) bool { return true })
}

func (c *cluster) chooseAmong(w *work, allowed func(*node) bool) []*node {
	free := map[*node]raydemand.Bundle{}
	used := map[*node]int{}
	chosen := make([]*node, len(w.parts))
	for i, p := range w.parts {
		if p.on != nil {
			chosen[i] = p.on
			used[p.on]++
		}
	}
	for i, p := range w.parts {
		if chosen[i] != nil {
			continue
		}
		candidates := slices.DeleteFunc(c.open(p), func(n *node) bool {
			return !allowed(n) || w.gang.Strategy == raydemand.StrictSpread && used[n] > 0
		})
		if w.gang.Strategy == raydemand.Spread {
			slices.SortStableFunc(candidates, func(a, b *node) int { return used[a] - used[b] })
		}
		n := c.fit(p, candidates, free)
		if n == nil {
			return nil
		}
		if free[n] == nil {
			free[n] = n.free.Clone()
		}
		free[n].Take(p.bundle)
		used[n]++
		chosen[i] = n
	}
	return chosen
}

// open lists the nodes that accept work. If the part requests no GPU, nodes without GPUs come first, as Ray prefers.
func (c *cluster) open(p part) []*node {
	var open []*node
	for _, n := range c.nodes {
		if !n.dead && n.drain == autoscalerpb.DrainNodeReason_DRAIN_NODE_REASON_UNSPECIFIED {
			open = append(open, n)
		}
	}
	if p.bundle[raydemand.GPU] == 0 {
		slices.SortStableFunc(open, func(a, b *node) int {
			return min(1, int(a.Resources[raydemand.GPU])) - min(1, int(b.Resources[raydemand.GPU]))
		})
	}
	return open
}

// fit returns the first node that has room for the part. It tries the selectors in order of preference.
func (c *cluster) fit(p part, candidates []*node, free map[*node]raydemand.Bundle) *node {
	selectors := p.selector
	if len(selectors) == 0 {
		selectors = []raydemand.Selector{nil}
	}
	for _, s := range selectors {
		for _, n := range candidates {
			room := n.free
			if free[n] != nil {
				room = free[n]
			}
			if s.Matches(n.Labels) && room.Fits(p.bundle) {
				return n
			}
		}
	}
	return nil
}

func (c *cluster) labelValues(label string) []string {
	var values []string
	for _, n := range c.nodes {
		if value, ok := n.Labels[label]; ok && !n.dead {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}
