package main

import (
	"context"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
)

// traced runs cycles in spans. What a cycle logs carries its span's ids; the span itself is told only where the cycle
// changed something or failed: a fleet at rest makes five cycles a second for each cluster.
func traced(loop *controller.Controller, tracer *telemetry.Tracer) kube.Reconcile {
	return func(ctx context.Context, key nodepool.ClusterKey) time.Duration {
		before, _ := loop.Decision(key)
		begun := time.Now()
		ctx, span := tracer.Begin(ctx, key.Namespace, key.Name, begun)
		next := loop.Cycle(ctx, key)
		if d, known := loop.Decision(key); known && d != before && worthTelling(d) {
			span.End(toldOf(d, begun, time.Now()))
		}
		return next
	}
}

// worthTelling reports whether a cycle did something, or could not.
func worthTelling(d *controller.Decision) bool {
	return len(d.Actions) > 0 || d.Err != "" || rayFailed(d)
}

// toldOf is what the span of a decision tells, of a cycle that lasted from begun to ended. Where the RayCluster could not be
// read the decision is that of an earlier cycle, and observing is all that this one did.
func toldOf(d *controller.Decision, begun, ended time.Time) telemetry.Told {
	t := telemetry.Told{At: d.At, Observed: d.Observed, Planned: d.Planned, Mode: string(d.Mode), Err: d.Err}
	if d.Stumbled {
		t.At, t.Observed, t.Planned = begun, ended.Sub(begun), 0
		return t
	}
	t.Applied = max(0, d.Took-d.Observed-d.Planned)
	if t.Err == "" && rayFailed(d) {
		t.Err = d.RayErr
	}
	for _, a := range d.Actions {
		t.Actions = append(t.Actions, a.Kind+"-"+a.Result)
		t.Reasons = append(t.Reasons, reasonOf(d, a))
	}
	slices.Sort(t.Reasons)
	t.Reasons = slices.Compact(t.Reasons)
	return t
}
