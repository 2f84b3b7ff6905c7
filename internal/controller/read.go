package controller

import (
	"context"
	"errors"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// readRay reads the head's state, without nodes if its fingerprint is known, and logs once that it does not answer.
func (c *Controller) readRay(
	ctx context.Context, r *record, cluster nodepool.Cluster, now time.Time, known uint64,
) (raydemand.State, error) {
	before := r.gcs.Failures
	state, err := r.gcs.State(ctx, c.dial, cluster, now,
		timeouts{Call: c.config.GCSTimeout, LongestBackoff: c.config.GCSBackoff}, known)
	if before == 0 && r.gcs.Failures > 0 { // once, until it answers again
		c.config.Log.InfoContext(ctx, "the head does not answer", "cluster", cluster.Key.String(), "err",
			headDetail(err))
	}
	return state, err
}

// nodesNow reads the nodes of the view's Ray session again.
func (c *Controller) nodesNow(ctx context.Context, r *record, v observe.View) ([]raydemand.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	state, err := r.gcs.Ray.State(ctx)
	if err == nil && (state.Session != v.State.Session || observe.LivingHead(state.Nodes) == nil) {
		err = errDifferentSession
	}
	return state.Nodes, err
}

// errDifferentSession means that the second reading comes from another Ray session, or from a GCS that does not list
// its head.
var errDifferentSession = errors.New("the GCS was restarted or lists no head")
