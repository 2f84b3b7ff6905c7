package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// raySight is how long a reading of Ray is good enough to take away a pod that only its absence from Ray condemns, or to
// ask a node to leave: raylets report once a second, so an older one may miss a worker that has joined and got work.
const raySight = time.Second

// recentEnough keeps the removals for which a look of that age is good enough: raySight where a pod goes because no living
// node was in it, longest where Ray or a deadline had agreed. Multi-host replicas stay whole.
func (s reductions) recentEnough(members []membership.Member, age, longest time.Duration) reductions {
	s.removals = wholeReplicas(members, slices.DeleteFunc(slices.Clone(s.removals), func(gone removal) bool {
		return age > longest || absent(gone.reason) && age > raySight
	}))
	return s
}

// errOtherRay says that the second reading comes from another Ray session, or from a GCS that does not list its head.
var errOtherRay = errors.New("the GCS was restarted or lists no head")

// lookAgain reads Ray once more after the fresh list, which may have taken seconds: meanwhile a pod may have joined, and
// an idle node may have got work. It keeps what still holds.
func (c *Controller) lookAgain(ctx context.Context, r *record, o *outcome) {
	if !o.intent.reduces() {
		return
	}
	o.lookedAt = c.config.Now()
	ctx, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	state, err := r.line.ray.State(ctx)
	if err == nil && (state.Session != o.view.state.Session || membership.LivingHead(state.Nodes) == nil) {
		err = errOtherRay
	}
	if err != nil {
		o.paused = fmt.Sprintf("the second look at Ray failed: %v", err)
		o.intent = o.intent.withoutReductions()
		return
	}
	slow := c.config.Now().Sub(o.lookedAt) > raySight
	hidden := len(membership.Orphans(o.view.cluster, state.Nodes)) > 0
	o.intent.reductions = o.intent.stillTrue(membership.Join(o.view.cluster, state.Nodes), !slow && !hidden)
}

// stillTrue keeps the reductions that members, read again, do not contradict, multi-host replicas whole. A reading that
// came too slowly, or shows nodes that are found in no pod, proves no absence.
func (s reductions) stillTrue(members []membership.Member, proves bool) reductions {
	byPod := make(map[string]membership.Member, len(members))
	for _, m := range members {
		byPod[m.Pod] = m
	}
	var kept reductions
	for _, gone := range s.removals {
		lives := byPod[gone.pod].Joined()
		switch {
		case gone.reason == removedDrained && lives: // its container was started anew
		case absent(gone.reason) && (lives || !proves):
		default:
			kept.removals = append(kept.removals, gone)
		}
	}
	kept.removals = wholeReplicas(members, kept.removals)
	changed := map[string]bool{}
	for _, w := range s.wishes {
		changed[unitOf(w.replica, w.pod)] = changed[unitOf(w.replica, w.pod)] || !sameUse(w.node, byPod[w.pod].Node)
	}
	for _, w := range s.wishes {
		if !changed[unitOf(w.replica, w.pod)] {
			kept.wishes = append(kept.wishes, w)
		}
	}
	return kept
}

// sameUse reports whether the node is still the one that was seen, and as idle or busy as it was.
func sameUse(before raydemand.Node, now *raydemand.Node) bool {
	return now != nil && now.ID == before.ID && now.Status == before.Status
}

// unitOf names what leaves as one: a multi-host replica, else the pod itself.
func unitOf(replica, pod string) string {
	if replica != "" {
		return "replica " + replica
	}
	return "pod " + pod
}
