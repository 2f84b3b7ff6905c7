package controller

import (
	"context"
	"errors"
	"fmt"

	"heliostat.dev/heliostat/internal/controller/membership"
	"heliostat.dev/heliostat/internal/controller/reduction"
)

// errDifferentSession means that the second reading comes from another Ray session, or from a GCS that does not list
// its head.
var errDifferentSession = errors.New("the GCS was restarted or lists no head")

// rereadRay reads Ray again after the fresh list, which may have taken seconds: a pod may have joined, or an idle node
// may have work. It keeps the reductions that still hold.
func (c *Controller) rereadRay(ctx context.Context, r *record, o *outcome) {
	if !o.intent.Any() {
		return
	}
	o.rereadAt = c.config.Now()
	ctx, cancel := context.WithTimeout(ctx, c.config.GCSTimeout)
	defer cancel()
	state, err := r.gcs.Ray.State(ctx)
	if err == nil && (state.Session != o.view.State.Session || membership.LivingHead(state.Nodes) == nil) {
		err = errDifferentSession
	}
	if err != nil {
		o.paused = fmt.Sprintf("reading Ray again before a reduction failed: %v", err)
		o.intent = o.intent.withoutReductions()
		return
	}
	slow := c.config.Now().Sub(o.rereadAt) > reduction.ReadingValidity
	hidden := len(membership.Orphans(o.view.Cluster, state.Nodes)) > 0
	o.intent.Set = o.intent.ConfirmedByRay(membership.Join(o.view.Cluster, state.Nodes), !slow && !hidden)
}
