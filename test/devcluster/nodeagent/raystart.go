package nodeagent

import (
	"context"
	"slices"
	"strings"
	"time"
)

const (
	// raySettled is the pause between two looks at a Ray node that starts.
	raySettled = 250 * time.Millisecond
	// raySlowest bounds how long a Ray node that never becomes ready keeps others from starting. A raylet itself gives
	// up after half a minute without its agents.
	raySlowest = 45 * time.Second
)

// enterRayStart waits for Config.RayStart where the command starts a Ray node with a readiness probe. The caller calls
// the function that it returns once the node has started, or has failed.
func (c *container) enterRayStart(ctx context.Context, command []string) (done func(), err error) {
	enter := c.pod.agent().cfg.RayStart
	starts := slices.ContainsFunc(command, func(word string) bool { return strings.Contains(word, "ray start") })
	if enter == nil || !starts || c.spec.ReadinessProbe == nil {
		return func() {}, nil
	}
	done, err = enter(ctx)
	if err != nil {
		return nil, &waitingError{"ContainerCreating", err}
	}
	return done, nil
}

// leaveRayStart calls done when the readiness probe succeeds for the first time, the process ends, or raySlowest is
// over. It looks more often than the probe says, so that others do not wait for the probe's initial delay.
func (c *container) leaveRayStart(ctx context.Context, done func()) {
	defer done()
	if c.spec.ReadinessProbe == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, raySlowest)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(raySettled):
		}
		asking, end := context.WithTimeout(ctx, 2*time.Second)
		err := c.check(asking, c.spec.ReadinessProbe.ProbeHandler)
		end()
		if err == nil {
			return
		}
	}
}
