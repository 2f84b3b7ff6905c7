package engine

import (
	"context"
	"time"

	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/requests"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// traced runs cycles in spans, unless a reading shows that the last decision stands. The logs of a cycle carry the ids
// of its span. The span itself is exported only if the cycle changed something, failed, or belongs to a scale-up: an
// idle fleet runs a cycle a second for each cluster.
func traced(loop *controller.Controller, tracer *telemetry.Tracer) kube.Reconcile {
	return func(ctx context.Context, key nodepool.ClusterKey, quiet bool) time.Duration {
		if quiet {
			if next, stands := loop.Stands(ctx, key); stands {
				return next
			}
		}
		before, _ := loop.Decision(key)
		begun := time.Now()
		ctx, span := tracer.Begin(ctx, key.Namespace, key.Name, begun)
		defer func() {
			if cause := recover(); cause != nil {
				panic(kube.Panic{Context: ctx, Cause: cause}) // the stack still has the first panic
			}
		}()
		next := loop.Cycle(ctx, key)
		if d, known := loop.Decision(key); known && d != before && (telemetry.Notable(d) || span.Follows()) {
			span.End(telemetry.ReportOf(d, begun, time.Now()))
		}
		return next
	}
}

// tracedRequests is the store of the annotation resource-requests of all RayClusters. It creates a span for each call
// that requests resources, in the caller's own trace if there is one.
type tracedRequests struct {
	manager *kube.Manager
	tracer  *telemetry.Tracer
}

// Get returns the requests, and since when; zero if that is unknown.
func (r tracedRequests) Get(ctx context.Context, key nodepool.ClusterKey) ([]raydemand.Request, time.Time, error) {
	return r.manager.ResourceRequests(ctx, key)
}

// Set replaces the requests and notes the call, so that the scale-up which serves it belongs to the same trace.
func (r tracedRequests) Set(
	ctx context.Context,
	key nodepool.ClusterKey,
	requests []raydemand.Request,
	since time.Time,
) error {
	ctx, end := r.tracer.Called(ctx, "request_resources", key.Namespace, key.Name)
	err := r.manager.SetResourceRequests(ctx, key, requests, since)
	end(err)
	return err
}

// tracedOwned does the same for requests of owners.
type tracedOwned struct {
	requests.Calls
	tracer *telemetry.Tracer
}

// Put notes the call.
func (r tracedOwned) Put(ctx context.Context, wanted nodepool.OwnedRequest,
	may func(*nodepool.OwnedRequest) error) (nodepool.OwnedRequest, bool, error) {
	ctx, end := r.tracer.Called(ctx, "request_resources", wanted.Cluster.Namespace, wanted.Cluster.Name)
	kept, created, err := r.Calls.Put(ctx, wanted, may)
	end(err)
	return kept, created, err
}
