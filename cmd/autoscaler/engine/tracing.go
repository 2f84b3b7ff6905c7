package engine

import (
	"context"
	"time"

	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
)

// traced runs cycles in spans, unless a reading shows that the last decision stands. The logs of a cycle carry the ids
// of its span. The span itself is exported only if the cycle changed something or failed: an idle fleet runs a
// cycle a second for each cluster.
func traced(loop *controller.Controller, tracer *telemetry.Tracer) kube.Reconcile {
	return func(ctx context.Context, key nodepool.ClusterKey, quiet bool) time.Duration {
		if quiet {
			if next, stands := loop.Stands(ctx, key); stands {
				return next
			}
		}
		before, _ := loop.Decision(key)
		ctx, end := tracer.Begin(ctx, key.Namespace, key.Name)
		defer func() {
			if cause := recover(); cause != nil {
				panic(kube.Panic{Context: ctx, Cause: cause}) // the stack still has the first panic
			}
		}()
		next := loop.Cycle(ctx, key)
		if d, known := loop.Decision(key); known && d != before && telemetry.Notable(d) {
			end(d)
		}
		return next
	}
}
