package scaledown

import (
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Set is what a cycle takes away: the pods to name now, and the nodes to ask to drain.
type Set struct {
	Removals []Removal
	Drains   []DrainRequest
}

// Any reports whether anything is taken away.
func (s Set) Any() bool { return len(s.Removals)+len(s.Drains) > 0 }

// OnlyWaiting keeps the pods that wait for quota behind Kueue's gate. No doubt about Ray's nodes concerns them: they
// have never had a node, so nothing can run in them.
func (s Set) OnlyWaiting() Set {
	s.Drains = nil
	s.Removals = slices.DeleteFunc(slices.Clone(s.Removals), func(r Removal) bool { return r.reason != removedNoQuota })
	return s
}

// ConfirmedBy keeps of fresh reductions those that s has too.
func (s Set) ConfirmedBy(fresh Set) Set {
	fresh.Removals = slices.DeleteFunc(slices.Clone(fresh.Removals), func(r Removal) bool {
		return !slices.ContainsFunc(s.Removals, func(first Removal) bool { return first.pod == r.pod })
	})
	fresh.Drains = slices.DeleteFunc(slices.Clone(fresh.Drains), func(w DrainRequest) bool {
		return !slices.ContainsFunc(s.Drains, func(first DrainRequest) bool { return first.Pod == w.Pod })
	})
	return fresh
}

// ReadingValidity is for how long a reading of Ray suffices to delete a pod only because Ray does not know it, or to
// drain a node: raylets report once a second, so an older one may miss a worker that has joined and got work.
const ReadingValidity = time.Second

// RecentEnough keeps the removals for which a reading of that age suffices: ReadingValidity if no living node was in
// the pod, longest if Ray or a deadline allowed it. Multi-host replicas stay whole.
func (s Set) RecentEnough(members []observe.Member, age, longest time.Duration) Set {
	s.Removals = wholeReplicas(members, slices.DeleteFunc(slices.Clone(s.Removals), func(gone Removal) bool {
		return age > gone.validity(longest)
	}))
	return s
}

// Validity is for how long a reading suffices for all removals; 0 if there are none.
func (s Set) Validity(longest time.Duration) (shortest time.Duration) {
	for i, gone := range s.Removals {
		if valid := gone.validity(longest); i == 0 || valid < shortest {
			shortest = valid
		}
	}
	return shortest
}

func (r Removal) validity(longest time.Duration) time.Duration {
	if absent(r.reason) {
		return min(ReadingValidity, longest)
	}
	return longest
}

// ConfirmedByRay keeps the reductions that members, read again, do not contradict, multi-host replicas whole. A
// reading that took too long, or has nodes that match no pod, proves no absence.
func (s Set) ConfirmedByRay(members []observe.Member, proves bool) Set {
	byPod := make(map[string]observe.Member, len(members))
	for _, m := range members {
		byPod[m.Pod] = m
	}
	var kept Set
	for _, gone := range s.Removals {
		lives := byPod[gone.pod].Joined()
		switch {
		case gone.reason == removedDrained && lives: // its container was restarted
		case absent(gone.reason) && (lives || !proves):
		default:
			kept.Removals = append(kept.Removals, gone)
		}
	}
	kept.Removals = wholeReplicas(members, kept.Removals)
	changed := map[string]bool{}
	for _, w := range s.Drains {
		if !sameUse(w.Node, byPod[w.Pod].Node) {
			changed[unitOf(w.Group, w.Replica, w.Pod)] = true
		}
	}
	kept.Drains = slices.DeleteFunc(slices.Clone(s.Drains),
		func(w DrainRequest) bool { return changed[unitOf(w.Group, w.Replica, w.Pod)] })
	return kept
}

// sameUse reports whether the node is still the same, and as idle or busy as before. If its idle time has begun anew,
// it has worked in between, and Ray may just place more work there.
func sameUse(before raydemand.Node, now *raydemand.Node) bool {
	return now != nil && now.ID == before.ID && now.Status == before.Status &&
		observe.UseOf(now) == observe.UseOf(&before) && now.Idle >= min(before.Idle, observe.PlacedShown)
}

// unitOf names what leaves as a whole: a multi-host replica, or the pod itself.
func unitOf(group, replica, pod string) string {
	if replica != "" {
		return group + " replica " + replica
	}
	return group + " pod " + pod
}

// LeavingText returns which pods of a group leave and why: "a, b (drained)".
func (s Set) LeavingText(group string) (pods []string, text string) {
	var why []string
	for _, r := range s.Removals {
		if r.group == group {
			pods = append(pods, r.pod)
			if !slices.Contains(why, r.reason) {
				why = append(why, r.reason)
			}
		}
	}
	return pods, strings.Join(pods, ", ") + " (" + strings.Join(why, ", ") + ")"
}
