package controller

import (
	"context"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/controller/observation"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// optIn returns what opting in would do; nil for a RayCluster that is managed or is being deleted.
func (c *Controller) optIn(o *outcome) *decision.OptIn {
	v := &o.view
	if v.Mode == nodepool.Managed || v.Cluster.Deleting {
		return nil
	}
	answer := decision.NewOptIn(v.Cluster.Key, v.Why, c.config.modes().OnOptIn(v.Cluster))
	if v.Mode != nodepool.Off && v.Live() {
		answer.Suppose(o.intent.snapshot, o.intent.plan, o.numGPUs)
	}
	return answer
}

// shadowGrace is how long demand must have waited before an Event reports it. Another autoscaler has acted by then:
// Ray's own polls every 5 s.
const shadowGrace = 10 * time.Second

// emitWaiting emits one Event while demand waits that Heliostat could serve if it managed the RayCluster. If another
// Heliostat manages it, or this one is read-only, there is nothing to opt in to.
func (c *Controller) emitWaiting(ctx context.Context, r *record, v observation.View, optIn *decision.OptIn) {
	if optIn == nil || optIn.Waiting == "" ||
		slices.Contains([]string{mode.ReadOnly, mode.Parked, mode.SidecarManages}, v.Why.Code) {
		return
	}
	if r.conditions.lasted(v.Now, EventWaitingInShadow, shadowGrace) &&
		r.conditions.raise(v.Now, EventWaitingInShadow, "") {
		c.emit(ctx, v, false, EventWaitingInShadow, optIn.Waiting+"; "+optIn.Allow)
	}
}
