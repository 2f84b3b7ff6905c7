package devcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// LoseData restarts the control plane with empty storage, like one that lost its etcd, with the same addresses and
// keys. It returns when KubeRay's kinds are installed and pods can be created. The cluster must have no nodes and no
// operator, whose objects would be lost too.
func (c *Cluster) LoseData(ctx context.Context) error {
	if err := c.loseData(ctx); err != nil {
		return fmt.Errorf("losing the control plane's data: %w", err)
	}
	return nil
}

func (c *Cluster) loseData(ctx context.Context) error {
	for _, part := range []Part{ControllerManager, Scheduler, APIServer, Etcd} {
		if err := c.KillPart(part); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(filepath.Join(c.Dir(), "etcd")); err != nil {
		return err
	}
	for _, part := range []Part{Etcd, APIServer} {
		if err := c.startPart(ctx, part); err != nil {
			return err
		}
	}
	if err := c.installKubeRay(ctx); err != nil {
		return err
	}
	for _, part := range []Part{Scheduler, ControllerManager} {
		if err := c.startPart(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
