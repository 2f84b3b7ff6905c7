package controller

import (
	"context"
	"log/slog"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// loop is what features use of the loop for one RayCluster.
type loop struct {
	c *Controller
	r *record
}

func (l loop) Now() time.Time                       { return l.c.config.Now() }
func (l loop) Log() *slog.Logger                    { return l.c.config.Log }
func (l loop) Ray() addon.Ray                       { return l.r.gcs.Ray }
func (l loop) CallTimeout() time.Duration           { return l.c.config.GCSTimeout }
func (l loop) Doubt(v observe.View) string          { return l.c.doubt(l.r, v) }
func (l loop) Paused(v observe.View) string         { return l.c.paused(l.r, v) }
func (l loop) OperatorBehind(v observe.View) string { return l.r.memory.Patches.OperatorBehind(v) }
func (l loop) Departing(v observe.View) []scaledown.DrainRequest {
	return l.r.memory.Departing(v, l.c.config.DrainDeadline)
}
func (l loop) UsedFor(node raydemand.NodeID) time.Duration {
	return l.r.memory.clock.UsedFor(l.c.config.Now(), node)
}
func (l loop) Settled(m observe.Member) bool             { return l.r.memory.settled(l.c.config.Now(), m) }
func (l loop) Drains() scaledown.Drains                  { return l.r.memory.drains }
func (l loop) Heavy(s *planner.Snapshot) bool            { return heavy(s) }
func (l loop) MayWrite(key nodepool.ClusterKey) bool     { return l.c.kube.MayWrite(key) }
func (l loop) Manages(before, now nodepool.Cluster) bool { return l.c.manages(before, now) }

func (l loop) Effective(cluster nodepool.Cluster) (nodepool.Mode, planner.Reason) {
	return l.c.config.Effective(cluster)
}

func (l loop) Cluster(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error) {
	return l.c.kube.Cluster(ctx, key)
}

func (l loop) Fresh(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error) {
	return l.c.kube.Fresh(ctx, key)
}

func (l loop) MayTakeAway(ctx context.Context, before nodepool.Cluster) bool {
	return l.c.mayStillTakeAway(ctx, before)
}

func (l loop) ReadRay(ctx context.Context, cluster nodepool.Cluster, now time.Time) (raydemand.State, error) {
	return l.c.readRay(ctx, l.r, cluster, now, 0)
}

func (l loop) NodesNow(ctx context.Context, v observe.View) ([]raydemand.Node, error) {
	return l.c.nodesNow(ctx, l.r, v)
}

func (l loop) Plan(v observe.View) addon.Intent {
	return l.r.memory.Decide(v, &l.c.config, l.c.compute, l.r.features)
}

func (l loop) Drain(ctx context.Context, o *addon.Cycle, w scaledown.DrainRequest) addon.Action {
	return l.c.ask(ctx, l.r, o, w)
}

func (l loop) Emit(ctx context.Context, v observe.View, e addon.Event) { l.c.emit(ctx, v, e) }

func (l loop) EmitOnce(ctx context.Context, v observe.View, e addon.Event) {
	l.c.emitOnce(ctx, l.r, v, e)
}

// writeRound bounds what features write beside the RayCluster in one cycle, in number and in time, so that growth never
// waits long behind them. The next cycle writes the rest.
const (
	writeRound     = 16
	writeRoundTime = 250 * time.Millisecond
)

func (l loop) WriteRound(ctx context.Context, o *addon.Cycle, count int, write func(at int) bool) {
	if now, err := l.c.kube.Cluster(ctx, o.View.Cluster.Key); err != nil || !l.c.mayGuardNow(o.View, now) {
		return
	}
	began := l.c.config.Now()
	for at := range min(count, writeRound) {
		now := l.c.config.Now()
		if now.Sub(began) > writeRoundTime || !l.c.kube.MayWrite(o.View.Cluster.Key) ||
			!l.c.writes.AllowN(now, 1) || !write(at) {
			return
		}
	}
}
