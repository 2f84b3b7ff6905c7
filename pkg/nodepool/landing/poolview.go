package landing

import (
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool/podfit"
)

// poolView is what the nodes and the declared shape of one pool show about one pod, for a Judge.
type poolView struct {
	room *Room
	// nodes counts existing nodes. best and shape are the best outlooks of the nodes and of the declared shape.
	nodes       int
	best, shape podfit.Outlook
	declared    bool
	// notReady is the first node that could hold the pod if it were ready; empty if there is none.
	notReady string
	// unlike, like: see poolCount.
	unlike, like bool
	// has are the extended resources that some node of the pool announces.
	has map[string]bool
	// perNode is how many pods the declared shape or the right kind of node holds.
	perNode int64
	// oldest is when the first node registered that can never hold the pod, settles when the newest node is complete.
	oldest, settles time.Time
}

func (v *poolView) add(p *podfit.PodShape, place *podfit.Node, misses []podfit.Mismatch) []podfit.Mismatch {
	outlook, misses := p.OutlookOn(place, misses)
	if outlook < podfit.Unsaid {
		v.perNode = max(v.perNode, p.PodsOnNew(place))
	}
	if place.Declared {
		v.declared, v.shape = true, outlook
		return misses
	}
	if v.nodes == 0 || outlook < v.best {
		v.best = outlook
	}
	if outlook == podfit.HoldsLater && podfit.OnlyOf(misses, podfit.NotReady) && v.notReady == "" {
		v.notReady = place.Name
	}
	v.nodes++
	v.settles = later(v.settles, place)
	v.note(place)
	if v.room.Mixed {
		unlike := unlike(p, place, v.room.Template)
		v.unlike, v.like = v.unlike || unlike, v.like || !unlike
	}
	if outlook == podfit.Never && (v.oldest.IsZero() || place.CreatedAt.Before(v.oldest)) {
		v.oldest = place.CreatedAt
	}
	return misses
}

func (v *poolView) note(place *podfit.Node) {
	for name, amount := range place.Allocatable {
		if amount > 0 && strings.Contains(name, "/") {
			if v.has == nil {
				v.has = map[string]bool{}
			}
			v.has[name] = true
		}
	}
}

// answer returns what the pool says about the pod.
func (v *poolView) answer(p *podfit.PodShape) answer {
	say := func(state State) answer { return answer{Verdict: Verdict{State: state}} }
	full := v.full(p)
	ifRoom := func(state State) answer {
		switch {
		case !full:
			return say(state)
		case v.nodes > 0 && v.best < podfit.Never:
			return say(Trying) // its nodes are coming up
		}
		return answer{Verdict: Verdict{State: Limited, Why: v.room.noRoom(), Settles: v.settles}}
	}
	switch {
	case v.nodes > 0 && v.best == podfit.HoldsNow:
		return say(Fits)
	case v.declared && v.shape == podfit.HoldsNow:
		return ifRoom(Fits)
	case v.nodes > 0 && v.best == podfit.HoldsLater && v.room.Pool != "":
		switch {
		case !full:
			return say(Fits)
		case v.notReady != "":
			return answer{Verdict: Verdict{State: Waiting, Why: "node " + v.notReady +
				" is NotReady, and pool " + v.room.Pool + " may add no other"}}
		}
		return say(Trying) // its nodes are cordoned or have unhealthy cards
	case v.room.Template != nil:
		return v.ofTemplate(p, ifRoom)
	case v.room.Mixed && v.unlike && !v.like:
		return v.never()
	case v.room.Mixed:
		return ifRoom(Trying)
	case v.nodes == 0 && !v.declared:
		return v.ofUnknown(p, ifRoom)
	case v.nodes > 0 && v.best < podfit.Never:
		return say(Trying)
	case v.declared && v.shape < podfit.Never:
		return ifRoom(Trying)
	}
	return v.never()
}

// full reports whether the pool may add no node for the pod.
func (v *poolView) full(p *podfit.PodShape) bool {
	more := v.room.mayAddPods(p, v.perNode)
	return more != nil && *more == 0
}

func (v *poolView) never() answer {
	verdict := Verdict{State: Nowhere}
	if !v.oldest.IsZero() {
		verdict.Settles = v.oldest.Add(deviceTime)
	}
	return answer{Verdict: verdict}
}

// ofTemplate judges by what a NodePool says about its nodes.
func (v *poolView) ofTemplate(p *podfit.PodShape, ifRoom func(State) answer) answer {
	if why := v.room.refusal(p); why != "" {
		return answer{Verdict: Verdict{State: Nowhere, Why: why}}
	}
	switch {
	case !asksForeign(p, func(name string) bool { return v.has[name] }):
		return ifRoom(Fits)
	case v.nodes > 0 && v.unlike && !v.like:
		return v.never()
	}
	return ifRoom(Trying)
}

// ofUnknown judges a pool of which only the name and the size are known.
func (v *poolView) ofUnknown(p *podfit.PodShape, ifRoom func(State) answer) answer {
	if v.room.elsewhere(p) {
		return v.never()
	}
	a := ifRoom(Trying)
	a.unknown = v.room.MaxNodes == nil || *v.room.MaxNodes > 0
	return a
}
