package devcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// LoseData lets the control plane begin anew with nothing stored, as one does whose etcd was lost, on the same addresses and with the same
// keys. It returns when KubeRay's kinds are there and pods can be made. For a cluster without nodes and operator: theirs would be gone.
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
