package podruntime

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"heliostat.dev/heliostat/test/devcluster/nodeagent/sandbox"
)

// stop ends one run: preStop hook, SIGTERM, and SIGKILL at the deadline or when now is closed.
func (c *Container) stop(proc *sandbox.Process, deadline time.Time, now <-chan struct{}) {
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	terminated := make(chan struct{})
	go func() {
		defer close(terminated)
		<-proc.Prepared()
		c.preStop(ctx)
		proc.Terminate()
	}()
	select {
	case <-proc.Done():
	case <-late.C:
		proc.Kill()
	case <-now:
		proc.Kill()
	}
	cancel()
	<-terminated
	<-proc.Done()
}

// preStop runs the hook. Like the kubelet, it logs a failure and continues.
func (c *Container) preStop(ctx context.Context) {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PreStop == nil {
		return
	}
	hook := c.spec.Lifecycle.PreStop
	handler := corev1.ProbeHandler{Exec: hook.Exec, HTTPGet: hook.HTTPGet, TCPSocket: hook.TCPSocket}
	if hook.Sleep != nil {
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(hook.Sleep.Seconds) * time.Second):
		}
		return
	}
	if err := c.target().Check(ctx, handler); err != nil {
		c.pod.log.Warn("preStop hook failed", "container", c.spec.Name, "err", err)
	}
}
