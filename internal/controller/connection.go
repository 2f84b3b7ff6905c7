package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// errNoHead says that the head has no address yet, which is no failure.
var errNoHead = errors.New("the head pod has no address yet")

// errResting says that a head which did not answer is left alone for a while.
var errResting = errors.New("waiting before the next try")

// firstBackoff is the pause after the first failed reading; it doubles up to Config.GCSBackoff.
const firstBackoff = 250 * time.Millisecond

// timeouts bound calls to a head.
type timeouts struct {
	// Call bounds one call.
	Call time.Duration
	// LongestBackoff is the longest pause between two tries of a head that does not answer.
	LongestBackoff time.Duration
}

// connection is one cluster's line to its GCS. Any failure closes it, so that the next try reads address, token and
// certificates anew; only this cluster waits.
type connection struct {
	ray      Ray
	identity string
	// seen holds session and version of the last reading that was taken in; since is when this GCS first answered.
	seen     raydemand.State
	since    time.Time
	failures int
	lastErr  error
	retryAt  time.Time
}

// state reads the cluster's state; a new head, known by its pod, restarts or address, gets a new connection.
func (c *connection) state(ctx context.Context, dial Dialer, cluster nodepool.Cluster, now time.Time, limits timeouts) (raydemand.State, error) {
	if cluster.Head.IP == "" {
		c.close()
		return raydemand.State{}, errNoHead
	}
	if identity := headIdentity(cluster); identity != c.identity {
		c.close()
		*c = connection{identity: identity, seen: c.seen}
	}
	if now.Before(c.retryAt) {
		return raydemand.State{}, fmt.Errorf("%w: %w", errResting, c.lastErr)
	}
	limited, cancel := context.WithTimeout(ctx, limits.Call)
	defer cancel()
	state, err := c.read(limited, dial, cluster)
	if ctx.Err() != nil {
		return raydemand.State{}, ctx.Err() // an end that was asked for says nothing of the head
	}
	if err != nil {
		c.fail(now, err, limits.LongestBackoff)
		return raydemand.State{}, err
	}
	c.failures, c.lastErr, c.retryAt = 0, nil, time.Time{}
	if c.since.IsZero() || !state.SameGCS(c.seen) {
		c.since = now
	}
	return state, nil
}

func (c *connection) read(ctx context.Context, dial Dialer, cluster nodepool.Cluster) (raydemand.State, error) {
	if c.ray == nil {
		ray, err := dial(ctx, cluster)
		if err != nil {
			return raydemand.State{}, fmt.Errorf("connecting to the GCS of %s: %w", cluster.Key, err)
		}
		c.ray = ray
	}
	state, err := c.ray.State(ctx)
	if err != nil {
		return raydemand.State{}, fmt.Errorf("reading the state of %s: %w", cluster.Key, err)
	}
	return state, nil
}

func (c *connection) fail(now time.Time, err error, longest time.Duration) {
	pause := min(firstBackoff<<min(c.failures, 16), longest)
	c.failures++
	c.lastErr, c.retryAt = err, now.Add(pause)
	c.close()
}

// plainly is why Ray is not read, in a sentence for people. What a failure of a head that is not ready is likely to mean is not told: it is most
// often just starting.
func plainly(err error, head nodepool.Head) string {
	var failure *raydemand.Failure
	switch {
	case !errors.As(err, &failure):
		return err.Error()
	case !head.Ready:
		return "the head pod is not ready yet: " + failure.Happened
	}
	return "the head does not answer: " + failure.Error()
}

// inFull is why Ray is not read with all that the transport said, for the log.
func inFull(err error) string {
	var failure *raydemand.Failure
	if errors.As(err, &failure) {
		return err.Error() + ": " + failure.Detail
	}
	return err.Error()
}

// close drops the line; the identity and the back-off stay.
func (c *connection) close() {
	if c.ray != nil {
		_ = c.ray.Close() // nothing can be done about a line that does not close
		c.ray = nil
	}
}

// renewed reports whether the state comes from another GCS process than the one before, of a new Ray session or, with fault
// tolerance, of the same: what was remembered is void.
func (c *connection) renewed(state raydemand.State) bool {
	before := c.seen
	c.seen = raydemand.State{Session: state.Session, Version: state.Version}
	return before.Session != "" && !state.SameGCS(before)
}

// headIdentity names one head at one address with one way to authenticate. A head that becomes ready counts as new: tries
// that failed while it was starting must not delay the first reading.
func headIdentity(cluster nodepool.Cluster) string {
	h, a := cluster.Head, cluster.Auth
	return fmt.Sprint(cluster.UID, h.PodUID, h.Restarts, h.IP, h.GCSPort, h.Ready, a)
}
