package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// errNoAddress means that the head has no address yet, which is no failure.
var errNoAddress = errors.New("the head pod has no address yet")

// errBackingOff means that the head did not answer and the next call is not due yet.
var errBackingOff = errors.New("waiting before the next call")

// firstBackoff is the pause after the first failed reading; it doubles up to Config.GCSBackoff.
const firstBackoff = 250 * time.Millisecond

// connection is the connection to the GCS of one cluster. Any failure closes it, so that the next call uses the
// current address, token and certificates; only this cluster waits.
type connection struct {
	Ray      addon.Ray
	identity identity
	// seen has the session and version of the last reading; Since is when this GCS process first answered.
	seen     raydemand.State
	Since    time.Time
	Failures int
	LastErr  error
	RetryAt  time.Time
}

// State reads the cluster's state. A new head, known by its pod, restarts or address, gets a new connection. A state
// whose fingerprint is known has no Nodes; 0 is none.
func (c *connection) State(
	ctx context.Context, dial addon.Dialer, cluster nodepool.Cluster, now time.Time, s *Config, known uint64,
) (raydemand.State, error) {
	if cluster.Head.IP == "" {
		c.Close()
		return raydemand.State{}, errNoAddress
	}
	if asked := identityOf(&cluster); asked != c.identity {
		c.Close()
		*c = connection{identity: asked, seen: c.seen}
	}
	if now.Before(c.RetryAt) {
		return raydemand.State{}, fmt.Errorf("%w: %w", errBackingOff, c.LastErr)
	}
	limited, cancel := context.WithTimeout(ctx, s.GCSTimeout)
	defer cancel()
	state, err := c.read(limited, dial, cluster, known)
	if ctx.Err() != nil {
		return raydemand.State{}, ctx.Err() // the process ends, which says nothing about the head
	}
	if err != nil {
		c.fail(now, err, s.GCSBackoff)
		return raydemand.State{}, err
	}
	c.Failures, c.LastErr, c.RetryAt = 0, nil, time.Time{}
	if c.Since.IsZero() || !state.SameGCS(c.seen) {
		c.Since = now
	}
	return state, nil
}

func (c *connection) read(
	ctx context.Context, dial addon.Dialer, cluster nodepool.Cluster, known uint64,
) (state raydemand.State, err error) {
	if c.Ray == nil {
		ray, err := dial(ctx, cluster)
		if err != nil {
			return raydemand.State{}, fmt.Errorf("connecting to the GCS of %s: %w", cluster.Key, err)
		}
		c.Ray = ray
	}
	if known != 0 {
		state, err = c.Ray.Repeats(ctx, known)
	} else {
		state, err = c.Ray.State(ctx)
	}
	if err != nil {
		return raydemand.State{}, fmt.Errorf("reading the state of %s: %w", cluster.Key, err)
	}
	return state, nil
}

func (c *connection) fail(now time.Time, err error, longest time.Duration) {
	pause := min(firstBackoff<<min(c.Failures, 16), longest)
	c.Failures++
	c.LastErr, c.RetryAt = err, now.Add(pause)
	c.Close()
}

// HeadSummary returns why Ray is not read, in a sentence for users. While the head is not ready it leaves out likely
// causes: most often the head is just starting.
func HeadSummary(err error, head nodepool.Head) string {
	var failure *raydemand.Failure
	switch {
	case !errors.As(err, &failure):
		return err.Error()
	case !head.Ready:
		return "the head pod is not ready yet: " + failure.Happened
	}
	return "the head does not answer: " + failure.Error()
}

// headDetail returns why Ray is not read with everything that the transport reported, for the log.
func headDetail(err error) string {
	if failure, is := errors.AsType[*raydemand.Failure](err); is {
		return err.Error() + ": " + failure.Detail
	}
	return err.Error()
}

// Close closes the connection; the identity and the backoff stay.
func (c *connection) Close() {
	if c.Ray != nil {
		_ = c.Ray.Close() // there is nothing to do about a connection that does not close
		c.Ray = nil
	}
}

// Renewed reports whether the state comes from another GCS process than the one before, of a new Ray session or, with
// fault tolerance, of the same one. Then what was remembered is void.
func (c *connection) Renewed(state raydemand.State) bool {
	before := c.seen
	c.see(state)
	return before.Session != "" && !state.SameGCS(before)
}

// Same reports whether the state comes from the same GCS process as the one before. If not, the next reading still
// counts as renewed.
func (c *connection) Same(state raydemand.State) bool {
	same := state.SameGCS(c.seen)
	if same {
		c.see(state)
	}
	return same
}

func (c *connection) see(state raydemand.State) {
	c.seen = raydemand.State{Session: state.Session, Version: state.Version}
}

// identity names one head at one address with one way to authenticate. A head that becomes ready counts as new, so
// that calls that failed while it was starting do not delay the first reading.
type identity struct {
	cluster, pod, ip string
	restarts, port   int
	ready            bool
	auth             nodepool.Auth
}

func identityOf(cluster *nodepool.Cluster) identity {
	h := &cluster.Head
	return identity{cluster: cluster.UID, pod: h.PodUID, ip: h.IP, restarts: int(h.Restarts), port: int(h.GCSPort),
		ready: h.Ready, auth: cluster.Auth}
}

// readRay reads the head's state, without nodes if its fingerprint is known, and logs once that it does not answer.
func (c *Controller) readRay(
	ctx context.Context, r *record, cluster nodepool.Cluster, now time.Time, known uint64,
) (raydemand.State, error) {
	before := r.gcs.Failures
	state, err := r.gcs.State(ctx, c.dial, cluster, now, &c.config, known)
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
