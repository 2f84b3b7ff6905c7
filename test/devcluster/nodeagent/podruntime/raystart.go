package podruntime

import (
	"context"
	"slices"
	"strings"
	"time"
)

const (
	// rayCheckPause is the pause between two checks of a Ray node that starts.
	rayCheckPause = 250 * time.Millisecond
	// rayStartTimeout is how long a Ray node that does not become ready keeps others from starting. A raylet exits
	// after half a minute without its agents.
	rayStartTimeout = 45 * time.Second
)

// waitForRayStart calls Runtime.RayStart if the command starts a Ray node with a readiness probe. The caller must call
// done when the node has started or failed.
func (c *Container) waitForRayStart(ctx context.Context, command []string) (done func(), err error) {
	start := c.pod.rt.RayStart
	starts := slices.ContainsFunc(command, func(word string) bool { return strings.Contains(word, "ray start") })
	if start == nil || !starts || c.spec.ReadinessProbe == nil {
		return func() {}, nil
	}
	done, err = start(ctx)
	if err != nil {
		return nil, &waitingError{"ContainerCreating", err}
	}
	return done, nil
}

// watchRayStart calls done when the readiness probe succeeds for the first time, the process ends, or rayStartTimeout
// is over. It checks more often than the probe requires, so that other nodes do not wait for the probe's initial delay.
func (c *Container) watchRayStart(ctx context.Context, done func()) {
	defer done()
	if c.spec.ReadinessProbe == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rayStartTimeout)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(rayCheckPause):
		}
		checking, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := c.target().Check(checking, c.spec.ReadinessProbe.ProbeHandler)
		cancel()
		if err == nil {
			return
		}
	}
}
