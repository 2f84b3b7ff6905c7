package place

import (
	"cmp"
	"slices"
)

// Assignment decides which worker serves which REST request. If everything that is planned for fits together on workers
// that have joined Ray, it is placed there. Otherwise requests that were satisfied before keep their place, then the
// others get theirs in the order in which they are served, and the rest waits for workers on their way. So no request
// stops being satisfied because another one grows.

// AssignmentOrder lists the requests that were satisfied before, in the order in which they were created, and then the
// others in the order in which they are served.
func (p *Search) AssignmentOrder() []*RestRequest {
	all := make([]*RestRequest, len(p.RestRequests))
	for i := range p.RestRequests {
		all[i] = &p.RestRequests[i]
	}
	slices.SortStableFunc(all, func(a, b *RestRequest) int {
		return cmp.Or(CompareBool(b.satisfied(), a.satisfied()), a.SatisfiedSince.Compare(b.SatisfiedSince))
	})
	return all
}

// assign places the planned part of the requests, each as a whole, on those of some nodes that have joined Ray. It
// returns what has no place.
func (p *Search) assign(classes []NodeClass) (*Ledger, []*Item) {
	l := p.joinedLedger(classes)
	if b := p.newBatch(OverREST, p.admitted(), fullest); p.placed(l, b) {
		return l, nil
	}
	l = p.joinedLedger(classes)
	order := p.AssignmentOrder()
	before := slices.IndexFunc(order, func(s *RestRequest) bool { return !s.satisfied() })
	if before < 0 {
		before = len(order)
	}
	together := make([]int64, len(p.kinds))
	for _, s := range order[:before] {
		s.addTo(together)
	}
	if b := p.newBatch(OverREST, p.ofKinds(together), fullest); before > 0 && !p.placed(l, b) {
		l, before = p.joinedLedger(classes), 0
	}
	return l, p.ofKinds(p.assignEach(l, order[before:]))
}

// joinedLedger opens a ledger on the nodes that have joined Ray. Nothing can be launched on it.
func (p *Search) joinedLedger(classes []NodeClass) *Ledger {
	joined := make([]NodeClass, 0, len(classes))
	for i := range classes {
		if classes[i].phase != OnTheWay {
			joined = append(joined, classes[i])
		}
	}
	l := p.open(joined, make([]int64, len(p.Groups)))
	clear(l.room)
	l.spare, l.tracing = 0, true
	return l
}

func (p *Search) placed(l *Ledger, b *Batch) bool {
	p.place(l, b)
	return b.served()
}

// assignEach assigns one request after the other and returns the rest by kind of bundle.
func (p *Search) assignEach(l *Ledger, order []*RestRequest) []int64 {
	left := make([]int64, len(p.kinds)) // what has no place now has none later
	for _, s := range order {
		b := p.newBatch(OverREST, s.Items, fullest)
		for i, it := range s.Items {
			if b.left[i] = s.Admitted[i]; left[s.kinds[i]] > 0 || it.Trivial() {
				b.left[i] = 0
			}
		}
		l.useExisting(b)
		for i, it := range s.Items {
			switch at := s.kinds[i]; {
			case it.Trivial():
			case left[at] > 0:
				left[at] = min(left[at]+s.Admitted[i], MaxCount)
			default:
				left[at] = b.left[i]
			}
		}
	}
	return left
}

// assignments finds the places of the bundles of REST requests, by the key of their item: those on joined nodes first,
// then on nodes on their way, then on planned ones.
func (p *Search) assignments(given []int64) map[string][]Placement {
	if len(p.RestRequests) == 0 {
		return nil
	}
	settled := p.openLedger(countSettled, nil)
	l, left := p.assign(settled)
	if len(left) > 0 {
		coming := slices.DeleteFunc(
			p.open(settled, given).classes,
			func(l NodeClass) bool { return l.phase != OnTheWay },
		)
		l.classes = append(l.classes, coming...)
		p.place(l, p.newBatch(OverREST, left, fullest))
	}
	places := map[string][]Placement{}
	for _, at := range l.log {
		places[at.Item.Key] = append(places[at.Item.Key], at)
	}
	for _, all := range places {
		slices.SortStableFunc(all, func(a, b Placement) int {
			return cmp.Or(
				CompareBool(a.Phase == OnTheWay, b.Phase == OnTheWay),
				CompareBool(a.Planned, b.Planned),
				cmp.Compare(a.Group, b.Group),
			)
		})
	}
	return places
}

// keepUntilReplaced keeps idle workers that serve REST requests now if the plan counts on other workers that have not
// joined Ray. Growth elsewhere can make another packing better; until it is complete, no request loses its workers.
func (p *Search) keepUntilReplaced(out *Outcome) {
	mayStop := func(n int) bool { return out.Stays[n] == 0 }
	if len(p.RestRequests) == 0 || !slices.ContainsFunc(p.overdueNodes, mayStop) {
		return
	}
	l, left := p.assign(p.totals)
	if len(left) == 0 && !p.sharesComing(out) {
		return
	}
	for i := range l.classes {
		for _, n := range l.classes[i].members {
			if l.classes[i].touched && out.Stays[n] == 0 {
				out.Stays[n] = HeldOver
			}
		}
	}
}

// sharesComing reports whether the plan places some of the requests on pods that have not joined Ray.
func (p *Search) sharesComing(out *Outcome) bool {
	items := p.Claims[p.RestClaim].Items
	return slices.ContainsFunc(out.Log, func(e Placement) bool { return e.Purpose == OverREST }) ||
		slices.ContainsFunc(out.Waits, func(w Placement) bool { return slices.Contains(items, w.Item) })
}
