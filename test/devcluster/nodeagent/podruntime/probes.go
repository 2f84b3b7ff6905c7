package podruntime

import (
	"context"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/test/devcluster/nodeagent/probe"
	"heliostat.dev/heliostat/test/devcluster/nodeagent/sandbox"
)

// watchProbes sets started and ready, and stops a container whose liveness or startup probe fails. The rules are the
// kubelet's: the other probes begin after the startup probe has succeeded, and a container without a readiness probe is
// ready when it has started.
func (c *Container) watchProbes(ctx context.Context, proc *sandbox.Process) {
	c.setReady(c.spec.StartupProbe == nil, c.spec.StartupProbe == nil && c.spec.ReadinessProbe == nil)
	if !c.passStartup(ctx, proc) {
		return
	}
	c.setReady(true, c.spec.ReadinessProbe == nil)
	target := c.target()
	var probes sync.WaitGroup
	defer probes.Wait()
	if p := c.spec.ReadinessProbe; p != nil {
		probes.Go(func() {
			target.Watch(ctx, p, proc.Started(), func(ok bool) bool { c.setReady(true, ok); return true })
		})
	}
	if p := c.spec.LivenessProbe; p != nil {
		probes.Go(func() { target.Watch(ctx, p, proc.Started(), c.stopUnlessAlive(p, proc)) })
	}
}

// passStartup returns true when the startup probe has succeeded, or the container has none.
func (c *Container) passStartup(ctx context.Context, proc *sandbox.Process) bool {
	p := c.spec.StartupProbe
	if p == nil {
		return true
	}
	passed := false
	keep := c.stopUnlessAlive(p, proc)
	target := c.target()
	target.Watch(ctx, p, proc.Started(), func(ok bool) bool {
		passed = ok
		return !ok && keep(ok)
	})
	return passed
}

// stopUnlessAlive returns the function for verdicts of a liveness or startup probe. It stops the process if the probe
// failed; the restart policy decides what follows.
func (c *Container) stopUnlessAlive(p *corev1.Probe, proc *sandbox.Process) func(bool) bool {
	return func(alive bool) bool {
		if alive {
			return true
		}
		c.pod.log.Warn("probe failed; stopping the container", "container", c.spec.Name)
		grace := c.pod.GracePeriod(p.TerminationGracePeriodSeconds)
		go c.stop(proc, time.Now().Add(grace), nil)
		return false
	}
}

// target is the container as its probes and its preStop hook see it.
func (c *Container) target() probe.Target {
	return probe.Target{IP: c.pod.IP, Ports: c.spec.Ports, Exec: c.output}
}

func (c *Container) output(ctx context.Context, command []string, output io.Writer) error {
	return c.Exec(ctx, command, nil, output, output)
}
