package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/addon/nodeguard"
	"heliostat.dev/heliostat/internal/controller/backoff"
	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// guardRound bounds the guards that one cycle writes, in number and in time, so that growth never waits long behind
// them. The next cycle writes the rest.
const (
	guardRound     = 16
	guardRoundTime = 250 * time.Millisecond
)

// longestGuardPause bounds the pause after a write that failed if others succeed: a single pod may refuse its guard,
// and workers that get work meanwhile need theirs.
const longestGuardPause = 3 * time.Second

// protect writes and removes the annotations that keep node autoscalers from evicting busy workers.
func (c *Controller) protect(ctx context.Context, r *record, o *outcome) {
	defer c.reportGuards(ctx, r, o)
	if !c.mayGuard(r, o.view) {
		r.protection.err = nil
		return
	}
	if r.protection.rest.Resting(o.view.Now) {
		return
	}
	changes := r.protection.keeper.Changes(o.view, nodeguard.Facts{
		Trusted:  c.doubt(r, o.view) == "",
		HandBack: o.view.Mode != nodepool.Managed,
		Drained:  r.memory.Drains().EndsIdle,
		JoinTime: c.config.AllocationTimeout,
	})
	if len(changes) == 0 {
		r.protection.err = nil
		return
	}
	writeRound(ctx, c, o, changes, func(change nodepool.GuardChange) bool { return c.writeGuard(ctx, r, o, change) })
}

// writeRound writes changes beside the RayCluster until write reports false, as many as one cycle may, within the
// bounds of all such writes. It writes nothing if the RayCluster is no longer as it was observed.
func writeRound[T any](ctx context.Context, c *Controller, o *outcome, changes []T, write func(T) bool) {
	if now, err := c.kube.Cluster(ctx, o.view.Cluster.Key); err != nil || !c.mayGuardNow(o.view, now) {
		return
	}
	began := c.config.Now()
	for _, change := range changes[:min(len(changes), guardRound)] {
		now := c.config.Now()
		if now.Sub(began) > guardRoundTime || !c.kube.MayWrite(o.view.Cluster.Key) || !c.guardWrites.AllowN(now, 1) ||
			!write(change) {
			return
		}
	}
}

// mayGuard reports whether pods of the RayCluster may be written to: while it is managed, and afterwards to take away
// what this process wrote, unless another autoscaler of Heliostat has taken over.
func (c *Controller) mayGuard(r *record, v observe.View) bool {
	if !c.config.ProtectBusy {
		return false
	}
	if v.Mode == nodepool.Managed {
		r.protection.managed = true
		return true
	}
	return r.protection.managed && mode.HandedBack(&v.Cluster, v.Mode, v.Why)
}

// writeGuard carries one change out, and reports whether the round may go on.
func (c *Controller) writeGuard(ctx context.Context, r *record, o *outcome, change nodepool.GuardChange) bool {
	started := c.config.Now()
	err := c.kube.Guard(ctx, change)
	action := decision.Action{
		At: started, Kind: decision.ActionGuard, Result: decision.ResultOK, Pods: []string{change.Pod},
		Message: "guard removed", Took: c.config.Now().Sub(started),
	}
	if change.Keep {
		action.Message = "guard added"
	}
	switch {
	case err != nil && ctx.Err() != nil, errors.Is(err, nodepool.ErrReadOnly), errors.Is(err, nodepool.ErrNotLeading):
		return false
	case err == nil:
		r.protection.keeper.Wrote(change)
		r.protection.rest, r.protection.err, r.protection.wrote = backoff.Pause{}, nil, true
	case errors.Is(err, nodepool.ErrConflict), errors.Is(err, nodepool.ErrGone):
		r.protection.keeper.Wrote(change)
		action.Result = decision.ResultConflict
	default:
		r.protection.keeper.Failed(change)
		longest := backoff.Longest
		if r.protection.wrote {
			longest = longestGuardPause
		}
		r.protection.rest.FailWithin(o.view.Now, longest)
		r.protection.err = err
		action.Result, action.Message = decision.ResultError, err.Error()
	}
	o.actions = append(o.actions, action)
	c.config.Log.DebugContext(ctx, "guard", "cluster", change.Cluster.String(), "pod", change.Pod,
		"keep", change.Keep, "result", action.Result)
	return r.protection.err == nil
}

// Codes of findings about guards.
const (
	// GuardUnwritten: the last write of a guard failed, so busy workers may be evicted, or idle ones hold their nodes.
	GuardUnwritten = "guard-unwritten"
	// GuardLeft: pods have a guard of Heliostat, and this process does not remove it.
	GuardLeft = "guard-left"
)

// reportGuards reports guards that cannot be written, and guards that nobody will remove.
func (c *Controller) reportGuards(ctx context.Context, r *record, o *outcome) {
	cluster := &o.view.Cluster
	object := "RayCluster " + cluster.Key.String()
	if err := r.protection.err; err != nil {
		why := "node autoscalers may evict its busy workers: " + err.Error()
		c.emitOnce(ctx, r, o.view, decision.Event{
			Warning: true, Reason: decision.ReasonGuardFailed, Message: "writing guards failed: " + why,
		})
		o.findings = append(o.findings, raydemand.Finding{
			Code: GuardUnwritten, Severity: raydemand.Error, Object: object, Why: why,
			Fix: "grant Heliostat the verb patch on pods in namespace " + cluster.Key.Namespace +
				" (chart value protectBusy: true), or correct what the error says",
		})
	}
	if c.mayGuard(r, o.view) || leavesToOthers(o.view.Why.Code) {
		return
	}
	if left := guardsLeft(cluster); left > 0 {
		o.findings = append(o.findings, raydemand.Finding{
			Code:     GuardLeft,
			Severity: raydemand.Warning,
			Object:   object,
			Seen:     fmt.Sprintf("%d pods with the annotation %s", left, nodepool.GuardAnnotation),
			Why: "node autoscalers never remove the nodes of these pods, and this Heliostat does not write to them " +
				"now",
			Fix: fmt.Sprintf(
				"serve with --protect-busy while the RayCluster is managed, or `kubectl annotate pods -n %s "+
					"-l ray.io/cluster=%s %s- %s- %s-`",
				cluster.Key.Namespace,
				cluster.Key.Name,
				nodepool.DoNotDisruptAnnotation,
				nodepool.SafeToEvictAnnotation,
				nodepool.GuardAnnotation,
			),
		})
	}
}

// leavesToOthers reports whether another Heliostat manages the RayCluster, and so its guards.
func leavesToOthers(code string) bool { return code == mode.SidecarManages || code == mode.Parked }

// guardsLeft counts the pods with a guard of Heliostat.
func guardsLeft(cluster *nodepool.Cluster) int {
	left := 0
	if cluster.Head.Guard.Ours {
		left++
	}
	for i := range cluster.Workers {
		if w := &cluster.Workers[i]; w.Guard.Ours && !w.Terminating && !w.Failed {
			left++
		}
	}
	return left
}
