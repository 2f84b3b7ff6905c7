package observe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// lagWindow is how long a task that was placed may still be reported as pending elsewhere: the GCS polls each raylet
// once a second, so the reports of two nodes can be that far apart, plus the calls themselves
// (docs/reference/facts.md#load-report-lag).
const lagWindow = 1500 * time.Millisecond

// PlacementLag corrects the one way in which a state over-counts demand: a task already runs on B while A's older
// report still lists it as pending. Resources newly used on nodes are a credit against equal pending shapes. The
// credit ends when the pending count falls by as much (A has reported) or when the window is over. Without recent
// placements the demand passes unchanged, so growing demand is served at once. Under-counting is harmless: the next
// report corrects it.
type PlacementLag struct {
	// before are the nodes of the last reading, and pending is what waited then.
	before  []raydemand.Node
	pending map[string]int64
	credits []credit
	// heldSince is when the present series of credits began; zero while there are none.
	heldSince time.Time
}

type credit struct {
	shape string
	count int64
	until time.Time
}

// Correct adds one reading and returns its requests less what was placed within the window.
func (l *PlacementLag) Correct(now time.Time, state raydemand.State) []raydemand.Request {
	pending := make(map[string]int64, len(state.Demand.Requests))
	for _, r := range state.Demand.Requests {
		pending[shapeOf(r)] += r.Count
	}
	fell := make(map[string]int64)
	for shape, before := range l.pending {
		fell[shape] = max(0, before-pending[shape])
	}
	l.expire(now, fell)
	for shape, count := range l.taken(state) {
		if count -= fell[shape]; count > 0 {
			l.credits = append(l.credits, credit{shape: shape, count: count, until: now.Add(lagWindow)})
		}
	}
	switch {
	case len(l.credits) == 0:
		l.heldSince = time.Time{}
	case l.heldSince.IsZero():
		l.heldSince = now
	}
	l.before, l.pending = state.Nodes, pending
	return l.subtract(state.Demand.Requests)
}

// Active reports whether demand is held back, so that the next reading should come soon.
func (l *PlacementLag) Active() bool { return len(l.credits) > 0 }

// MayHidePlacement reports whether a task may have been placed on a worker that still looks idle. Under constant load
// something is always being placed; then only Ray's refusal protects such a worker.
func (l *PlacementLag) MayHidePlacement(now time.Time) bool {
	return l.Active() && now.Sub(l.heldSince) < longestHold
}

// expire drops old credits and those whose shape has fallen since, oldest first. What remains of fell pays for the
// placements of this reading.
func (l *PlacementLag) expire(now time.Time, fell map[string]int64) {
	l.credits = slices.DeleteFunc(l.credits, func(c credit) bool { return !now.Before(c.until) })
	for i := range l.credits {
		c := &l.credits[i]
		paid := min(c.count, fell[c.shape])
		c.count -= paid
		fell[c.shape] -= paid
	}
	l.credits = slices.DeleteFunc(l.credits, func(c credit) bool { return c.count == 0 })
}

// taken counts per pending shape how often it fits into the resources newly used on nodes, large shapes first.
func (l *PlacementLag) taken(state raydemand.State) map[string]int64 {
	if l.pending == nil || len(state.Demand.Requests) == 0 {
		return nil // there is no earlier reading to compare with, or nothing to take
	}
	before := make(map[raydemand.NodeID]*raydemand.Node, len(l.before))
	for i := range l.before {
		if n := &l.before[i]; n.Status != raydemand.Dead {
			before[n.ID] = n
		}
	}
	bySize := slices.Clone(state.Demand.Requests)
	slices.SortStableFunc(bySize, largerFirst)
	counts := make(map[string]int64)
	for i := range state.Nodes {
		n := &state.Nodes[i]
		last := before[n.ID]
		if last == nil {
			last = &raydemand.Node{Available: n.Total} // a node that has just joined had everything available
		}
		if n.Status == raydemand.Dead || len(n.PlacedLabels) > len(last.PlacedLabels) {
			continue // used by a bundle of a new gang, not by a pending request
		}
		grown := grownUse(last, n)
		for _, r := range bySize {
			if grown == nil {
				break
			}
			if fits := timesIn(grown, r.Bundle, r.Count); fits > 0 && selects(r.Selectors, n.Labels) {
				counts[shapeOf(r)] += fits
				take(grown, r.Bundle, fits)
			}
		}
	}
	return counts
}

// grownUse returns what a node has less available than before.
func grownUse(before, n *raydemand.Node) raydemand.Bundle {
	var grown raydemand.Bundle
	for name, amount := range before.Available {
		if more := amount - n.Available[name]; more > 0 {
			if grown == nil {
				grown = raydemand.Bundle{}
			}
			grown[name] = more
		}
	}
	return grown
}

func (l *PlacementLag) subtract(requests []raydemand.Request) []raydemand.Request {
	if len(l.credits) == 0 {
		return requests
	}
	owed := make(map[string]int64)
	for _, c := range l.credits {
		owed[c.shape] += c.count
	}
	var rest []raydemand.Request
	for _, r := range requests {
		shape := shapeOf(r)
		paid := min(owed[shape], r.Count)
		owed[shape] -= paid
		if r.Count -= paid; r.Count > 0 {
			rest = append(rest, r)
		}
	}
	return rest
}

// shapeOf identifies a request by bundle and selectors, without the count.
func shapeOf(r raydemand.Request) string {
	var s strings.Builder
	s.WriteString(r.Bundle.String())
	for _, selector := range r.Selectors {
		s.WriteByte('|')
		s.WriteString(selector.String())
	}
	return s.String()
}

func largerFirst(a, b raydemand.Request) int {
	sum := func(b raydemand.Bundle) (all raydemand.Amount) {
		for _, amount := range b {
			all = all.Plus(amount)
		}
		return all
	}
	if c := cmp.Or(len(b.Bundle)-len(a.Bundle), cmp.Compare(sum(b.Bundle), sum(a.Bundle))); c != 0 {
		return c
	}
	return strings.Compare(shapeOf(a), shapeOf(b))
}

// timesIn counts how often want fits into room, at most limit times.
func timesIn(room, want raydemand.Bundle, limit int64) int64 {
	if want.IsZero() {
		return 0
	}
	times := limit
	for name, amount := range want {
		if amount > 0 {
			times = min(times, int64(room.Has(name)/amount))
		}
	}
	return times
}

func take(room, want raydemand.Bundle, times int64) {
	for name, amount := range want {
		room[name] -= amount.Times(times)
	}
}

func selects(selectors []raydemand.Selector, labels map[string]string) bool {
	return len(selectors) == 0 ||
		slices.ContainsFunc(selectors, func(s raydemand.Selector) bool { return s.Matches(labels) })
}
