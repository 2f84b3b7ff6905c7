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
	// Offers lets the next cycle of a RayCluster say what it could give back without force.
	Offers(key nodepool.ClusterKey, answer func([]giveback.Offer, error))
	// Take agrees on what is given back, and calls answer in a cycle of the RayCluster, unless ctx ends before. In that
	// cycle, allows says why nothing may be given back any more.
	Take(ctx context.Context, key nodepool.ClusterKey, ask giveback.Ask, allows func(*addon.Cycle) error,
		answer func(giveback.Reservation, error))
	// End ends a reservation.
	End(ctx context.Context, key nodepool.ClusterKey) error
	// Enqueue requests a cycle.
	Enqueue(key nodepool.ClusterKey)
}

// Market is what the RayClusters of one process know of each other. It keeps nothing that must survive a restart: that
// is in the annotations of the RayClusters (nodepool/giveback).
type Market struct {
	Settings
	desk Desk

	mu      sync.Mutex // guards all below
	members map[nodepool.ClusterKey]*member
	// parts are the members that allow it or hold something down for a taker. Without the annotation anywhere there are
	// none, and a cycle costs nothing.
	parts map[nodepool.ClusterKey]*member
}

// member is one RayCluster as of its last cycle.
type member struct {
	rank
	key         nodepool.ClusterKey
	reclaimable bool
	// unmanaged is why Heliostat does not write to it; empty if it does.
	unmanaged string
	gives     *giveback.Reservation
	taken     []giveback.Taking
	// rests: what was taken for it last has served its purpose.
	rests bool
	// offers are what it could give back at offeredAt, or noOffer says why it offers nothing.
	offers    []giveback.Offer
	noOffer   string
	offeredAt time.Time
	// wants is what it would take itself, as of its last cycle; nil for nothing. takes: it may take that now.
	wants *taking
	takes bool
	// askedAt is when it was asked for GPUs, if it has not answered yet; refusedAt is when it last refused, and refusal
	// is why.
	askedAt, refusedAt time.Time
	refusal            string
}

const (
	// answerWithin is how long an answer may take. A RayCluster that another process decides about gives none.
	answerWithin = 30 * time.Second
	// refusedFor is for how long a RayCluster that has refused is not asked again.
	refusedFor = time.Minute
)

// New returns a market without RayClusters.
func New(desk Desk, settings Settings) *Market {
	return &Market{Settings: settings, desk: desk, members: map[nodepool.ClusterKey]*member{},
		parts: map[nodepool.ClusterKey]*member{}}
}

// Addon returns the feature of the loop.
func (m *Market) Addon() addon.Addon {
	return addon.Addon{
		New: func(loop addon.Loop) addon.Feature {
			f := &feature{loop: loop, market: m}
			return addon.Feature{AfterDrains: f.act}
		},
		WithoutCluster: func(_ context.Context, key nodepool.ClusterKey) time.Duration {
			m.mu.Lock()
			delete(m.members, key)
			delete(m.parts, key)
			m.mu.Unlock()
			m.wake(key)
			return 0
		},
	}
}

// note notes what a cycle has read.
func (m *Market) note(o *addon.Cycle) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := &o.View
	known := m.members[v.Cluster.Key]
	if known == nil {
		known = &member{key: v.Cluster.Key}
		m.members[v.Cluster.Key] = known
	}
	known.rank, known.reclaimable, known.gives = rankOf(o), v.Cluster.Reclaimable, v.Cluster.GiveBack
	known.taken, known.unmanaged = giveback.Recent(v.Cluster.Reclaimed, v.Now), ""
	if v.Mode != nodepool.Managed {
		known.unmanaged = v.Why.Message
	}
	m.part(known)
}

// part updates whether a member is one of the parts, after a change of it.
func (m *Market) part(each *member) {
	if each.reclaimable || each.gives != nil {
		m.parts[each.key] = each
	} else {
		delete(m.parts, each.key)
	}
}

// unused reports whether nothing can be taken, and nothing was.
func (m *Market) unused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.parts) == 0
}

// rest notes that a taker waits for nothing any more: those that hold something down for it end that.
func (m *Market) rest(taker nodepool.ClusterKey) {
	m.mu.Lock()
	m.members[taker].rests = true
	m.mu.Unlock()
	m.wake(taker)
}

// wake requests a cycle of those that have a reservation for a taker.
func (m *Market) wake(taker nodepool.ClusterKey) {
	for _, holds := range m.heldFor(taker) {
		m.desk.Enqueue(holds)
	}
}

// heldFor returns the RayClusters that have a reservation for a taker.
func (m *Market) heldFor(taker nodepool.ClusterKey) (all []nodepool.ClusterKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, each := range m.parts {
		if each.gives != nil && each.gives.Taker == taker.String() {
			all = append(all, key)
		}
	}
	return all
}

// over reports whether a taker is known to wait for nothing any more.
func (m *Market) over(taker nodepool.ClusterKey) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	each, known := m.members[taker]
	return known && each.rests
}

// rankOf returns the rank of a RayCluster as of its last cycle; false if it is gone.
func (m *Market) rankOf(key nodepool.ClusterKey) (of rank, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	each, known := m.members[key]
	if known {
		of = each.rank
	}
	return of, known
}

// lower returns the RayClusters from which a taker may take: those that allow it and whose rank is lower. The lowest
// come first.
func (m *Market) lower(taker nodepool.ClusterKey) (all []nodepool.ClusterKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, each := range m.parts {
		if key != taker && each.reclaimable && each.gives == nil && each.compare(m.members[taker].rank) < 0 {
			all = append(all, key)
		}
	}
	slices.SortFunc(all, func(a, b nodepool.ClusterKey) int {
		return cmp.Or(m.members[a].compare(m.members[b].rank), a.Compare(b))
	})
	return all
}

// askOffers asks what RayClusters could give back.
func (m *Market) askOffers(keys []nodepool.ClusterKey, now time.Time) {
	for _, key := range keys {
		m.desk.Offers(key, func(offers []giveback.Offer, err error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if each := m.members[key]; each != nil {
				each.offers, each.noOffer, each.offeredAt = offers, "", now
				if err != nil {
					each.noOffer = err.Error()
				}
			}
		})
	}
}

// choose returns what a taker would take: of the first RayCluster that can make room for more of its pods now, as few
// workers as possible. If none can, it returns why the first one cannot, or nil if nothing is known to prevent it.
func (m *Market) choose(room *whatIf, others []nodepool.ClusterKey, now time.Time) (first *taking) {
	for _, key := range others {
		m.mu.Lock()
		each, known := m.members[key]
		if !known {
			m.mu.Unlock()
			continue
		}
		from := *each
		m.mu.Unlock()
		if now.Sub(from.offeredAt) > answerWithin || first != nil && m.withheld(&from, 1, now) != "" {
			continue
		}
		found := m.from(room, &from, now)
		if found == nil {
			continue
		}
		found.taker, found.from, found.than = room.view.Cluster.Key, key, from.rank
		if found.why == "" {
			return found
		}
		first = cmp.Or(first, found)
	}
	return first
}

// from chooses among the offers of one RayCluster, or says why it offers nothing.
func (m *Market) from(room *whatIf, from *member, now time.Time) *taking {
	if from.noOffer != "" {
		return &taking{why: from.noOffer}
	}
	old := func(offer giveback.Offer) bool { return now.Sub(offer.Since) >= m.MinRuntime }
	left := int64(m.PerHour) - giveback.Taken(from.taken, now)
	if found := fromGroups(room, from, left, old); found != nil {
		found.why = m.withheld(from, giveback.GPUsOf(found.offers), now)
		return found
	}
	if !slices.ContainsFunc(from.offers, func(offer giveback.Offer) bool { return !old(offer) }) {
		return nil
	}
	found := fromGroups(room, from, left, func(giveback.Offer) bool { return true })
	if found != nil {
		found.why = fmt.Sprintf("RayCluster %s gives them when they have run for %s (--reclaim-min-runtime)", from.key,
			planner.Span(m.MinRuntime.Seconds()))
	}
	return found
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

// fromGroups chooses among those offers of one RayCluster that may be taken, of the group that makes room at the lowest
// cost: the fewest offers with work, then the fewest workers. left is how many GPUs it may still give.
func fromGroups(room *whatIf, from *member, left int64, may func(giveback.Offer) bool) (best *taking) {
	byGroup := map[string][]giveback.Offer{}
	var groups []string
	for _, offer := range from.offers {
		if !may(offer) {
			continue
		}
		if byGroup[offer.Group] == nil {
			groups = append(groups, offer.Group)
		}
		byGroup[offer.Group] = append(byGroup[offer.Group], offer)
	}
	for _, group := range groups {
		found := room.fewest(byGroup[group], left, from.rank)
		if found != nil && (best == nil || found.compareCost(best) < 0) {
			found.group, best = group, found
		}
	}
	return best
}

// want notes what a taker would take, and whether it may take that now.
func (m *Market) want(taker nodepool.ClusterKey, found *taking, now bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	each := m.members[taker]
	each.wants, each.takes = found, now
}

// allows returns why a RayCluster that is asked may not be taken from any more, in the cycle in which it answers: what
// both of them want may have changed since they were compared.
func (m *Market) allows(t *taking, o *addon.Cycle) error {
	m.note(o)
	m.mu.Lock()
	defer m.mu.Unlock()
	from, taker := m.members[t.from], m.members[t.taker]
	why := m.withheld(from, giveback.GPUsOf(t.offers), o.View.Now)
	switch {
	case taker == nil || taker.wants == nil || !taker.takes ||
		!slices.Equal(giveback.Pods(taker.wants.offers), giveback.Pods(t.offers)):
		why = fmt.Sprintf("RayCluster %s does not wait for these workers any more", t.taker)
	case !from.reclaimable:
		why = fmt.Sprintf("it no longer has the annotation %s: \"true\"", giveback.ReclaimableAnnotation)
	case from.compare(taker.rank) >= 0, from.compare(t.than) > 0:
		why = "its priority has become higher"
	}
	if why != "" {
		return fmt.Errorf("%w: %s", giveback.ErrRefused, why)
	}
	return nil
}

// mayAsk reports whether a RayCluster may be asked for GPUs: it has no reservation, and has answered before.
func (m *Market) mayAsk(key nodepool.ClusterKey, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	each := m.members[key]
	return each != nil && each.gives == nil && (each.askedAt.IsZero() || now.Sub(each.askedAt) > answerWithin)
}

// ask asks a RayCluster for the GPUs. The answer comes in one of its cycles.
func (m *Market) ask(ctx context.Context, t *taking, ask giveback.Ask, now time.Time) {
	m.mu.Lock()
	each, known := m.members[t.from]
	if !known {
		m.mu.Unlock()
		return
	}
	each.askedAt, m.members[t.taker].rests = now, false
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin) // it outlasts the cycle
	allows := func(o *addon.Cycle) error { return m.allows(t, o) }
	m.desk.Take(ctx, t.from, ask, allows, func(r giveback.Reservation, err error) {
		m.mu.Lock()
		each.askedAt = time.Time{}
		if err != nil {
			each.refusedAt, each.refusal = now, err.Error()
		} else if m.members[t.from] == each {
			each.gives = &r
			m.part(each)
		}
		m.mu.Unlock()
		cancel()
		m.desk.Enqueue(t.taker)
	})
}
