package reclaim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
)

// Desk is what the feature needs of give-back (addon/giveback).
type Desk interface {
	// Offers returns what the RayCluster of a cycle could give back without force.
	Offers(ctx context.Context, loop addon.Loop, o *addon.Cycle) ([]giveback.Offer, error)
	// Agree agrees in a cycle on what is given back.
	Agree(ctx context.Context, loop addon.Loop, o *addon.Cycle, ask giveback.Ask) (giveback.Reservation, error)
	// Enqueue requests a cycle.
	Enqueue(key nodepool.ClusterKey)
}

// Market is what the RayClusters of one process know of each other. It keeps nothing that must survive a restart: that
// is in the annotations of the RayClusters (nodepool/giveback).
type Market struct {
	Settings
	desk Desk

	mu sync.Mutex // guards what follows
	// members are the RayClusters that take part: those that allow it, that hold something down for a taker, or that
	// wait for room. Without the annotation anywhere there are none, and a cycle costs nothing.
	members map[nodepool.ClusterKey]*member
}

// member is one RayCluster as of its last cycle.
type member struct {
	rank
	key         nodepool.ClusterKey
	reclaimable bool
	// unmanaged is why Heliostat does not write to it; empty if it does.
	unmanaged string
	// gives is its reservation, and leaving are the workers of it that are not gone.
	gives   *giveback.Reservation
	leaving []giveback.Offer
	taken   []giveback.Taking
	// asked: it is to say what it could give back. offers are that at offeredAt, or noOffer says why there is nothing.
	asked     bool
	offers    []giveback.Offer
	noOffer   string
	offeredAt time.Time
	// wants is what it takes itself, as of its last cycle; nil for nothing. rests: what was taken for it last has
	// served its purpose.
	wants *taking
	rests bool
	// refusedAt is when it last refused, and refusal is why.
	refusedAt time.Time
	refusal   string
}

const (
	// answerWithin is for how long offers and what is wanted count. A RayCluster that another process decides about
	// offers nothing.
	answerWithin = 30 * time.Second
	// refusedFor is for how long a RayCluster that has refused is not asked again.
	refusedFor = time.Minute
)

// New returns a market without RayClusters.
func New(desk Desk, settings Settings) *Market {
	return &Market{Settings: settings, desk: desk, members: map[nodepool.ClusterKey]*member{}}
}

// Addon returns the feature of the loop.
func (m *Market) Addon() addon.Addon {
	return addon.Addon{
		New: func(loop addon.Loop) addon.Feature {
			f := &feature{loop: loop, market: m, self: &member{}}
			return addon.Feature{Observe: f.endServed, AfterDrains: f.act}
		},
		Forgotten: func(key nodepool.ClusterKey) {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.members, key)
			m.wake(m.heldFor(key))
		},
	}
}

// note notes what a cycle has read, and whether the RayCluster waits for room.
func (m *Market) note(self *member, o *addon.Cycle, waits bool) {
	v := &o.View
	self.key, self.rank, self.reclaimable = v.Cluster.Key, rankOf(o), v.Cluster.Reclaimable
	self.gives = v.Cluster.GiveBack
	self.taken, self.unmanaged, self.leaving = giveback.Recent(v.Cluster.Reclaimed, v.Now), "", nil
	if v.Mode != nodepool.Managed {
		self.unmanaged = v.Why.Message
	}
	for i := range v.Cluster.Workers {
		w := &v.Cluster.Workers[i]
		if g, known := v.Cluster.Group(w.Group); known && g.Kind != nil && self.gives.Has(w.UID) {
			self.leaving = append(self.leaving, giveback.Offer{
				Workers: []giveback.OfferedWorker{{Pod: w.Pod, Node: w.Node, Takes: g.Kind.Requests}}})
		}
	}
	if self.reclaimable || self.gives != nil || waits {
		m.members[self.key] = self
	} else {
		delete(m.members, self.key)
	}
}

func (m *Market) wake(all []member) {
	for i := range all {
		m.desk.Enqueue(all[i].key)
	}
}

// heldFor returns the RayClusters that have a reservation for a taker.
func (m *Market) heldFor(taker nodepool.ClusterKey) (all []member) {
	for _, each := range m.members {
		if each.gives != nil && each.gives.Taker == taker.String() {
			all = append(all, *each)
		}
	}
	return all
}

// lower returns the RayClusters from which a taker may take: those that allow it and whose rank is lower. The lowest
// come first.
func (m *Market) lower(taker *member) (all []member) {
	for _, each := range m.members {
		if each != taker && each.reclaimable && each.gives == nil && each.compare(taker.rank) < 0 {
			all = append(all, *each)
		}
	}
	slices.SortFunc(all, func(a, b member) int { return cmp.Or(a.compare(b.rank), a.key.Compare(b.key)) })
	return all
}

// wanted returns what is to be taken from a RayCluster now; nil for nothing. What both of them want may have changed
// since the taker compared it. Of several takers, the one with the highest rank comes first.
func (m *Market) wanted(from *member, now time.Time) (first *taking) {
	var ranked rank
	for _, taker := range m.members {
		t := taker.wants
		if t != nil && t.from == from.key && now.Sub(t.at) <= answerWithin && taker.compare(from.rank) > 0 &&
			from.compare(t.than) <= 0 && (first == nil || taker.compare(ranked) > 0) {
			first, ranked = t, taker.rank
		}
	}
	if first == nil || !from.reclaimable || from.gives != nil ||
		m.withheld(from, giveback.GPUsOf(first.offers), now) != "" {
		return nil
	}
	return first
}

// choose returns what a taker would take: of the first RayCluster that can make room for more of its pods now, as few
// workers as possible. If none can, it returns why the first one cannot, or nil if nothing is known to prevent it.
func (m *Market) choose(room *whatIf, others []member, now time.Time) (first *taking) {
	for i := range others {
		from := &others[i]
		if now.Sub(from.offeredAt) > answerWithin {
			continue
		}
		found := m.from(room, from, now)
		if found == nil {
			continue
		}
		found.taker, found.from, found.than, found.at = room.view.Cluster.Key, from.key, from.rank, now
		if found.why == "" {
			return found
		}
		first = cmp.Or(first, found)
	}
	return first
}

// from chooses among the offers of one RayCluster, of the group that makes room at the lowest cost: the fewest offers
// with work, then the fewest workers. If there are none, it says why.
func (m *Market) from(room *whatIf, from *member, now time.Time) (best *taking) {
	if from.noOffer != "" {
		return &taking{why: from.noOffer}
	}
	byGroup := map[string][]giveback.Offer{}
	var groups []string
	young := false
	for _, offer := range from.offers {
		if now.Sub(offer.Since) < m.MinRuntime {
			young = true
			continue
		}
		if byGroup[offer.Group] == nil {
			groups = append(groups, offer.Group)
		}
		byGroup[offer.Group] = append(byGroup[offer.Group], offer)
	}
	for _, group := range groups {
		found := room.fewest(byGroup[group], int64(m.PerHour)-giveback.Taken(from.taken, now), from.rank)
		if found != nil && (best == nil || found.compareCost(best) < 0) {
			found.group, best = group, found
		}
	}
	if best != nil {
		best.why = m.withheld(from, giveback.GPUsOf(best.offers), now)
	} else if young {
		best = &taking{why: fmt.Sprintf("it gives no worker that has not run for %s (--reclaim-min-runtime)",
			planner.Span(m.MinRuntime.Seconds()))}
	}
	return best
}

// withheld returns why a RayCluster gives no such number of GPUs now, whatever it offers; empty if it does.
func (m *Market) withheld(from *member, gpus int64, now time.Time) string {
	perHour, given := int64(m.PerHour), giveback.Taken(from.taken, now)
	switch {
	case from.unmanaged != "":
		return fmt.Sprintf("RayCluster %s gives nothing: %s", from.key, from.unmanaged)
	case given+gpus > perHour:
		return fmt.Sprintf("RayCluster %s gives at most %s an hour (--reclaim-gpus-per-hour), and has given %s",
			from.key, giveback.GPUs(perHour), giveback.GPUs(given))
	case now.Sub(from.refusedAt) < refusedFor:
		return fmt.Sprintf("RayCluster %s has just refused: %s", from.key, from.refusal)
	}
	return ""
}
