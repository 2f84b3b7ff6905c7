package devcluster

import (
	"context"
	"errors"
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

// data is the directory of the control plane's data, saved the directory of the copy that SaveData makes of it.
func (c *Cluster) data() string  { return filepath.Join(c.Dir(), "etcd") }
func (c *Cluster) saved() string { return filepath.Join(c.Dir(), "etcd-saved") }

func (c *Cluster) loseData(ctx context.Context) error {
	if err := c.killParts(ControllerManager, Scheduler, APIServer, Etcd); err != nil {
		return err
	}
	if err := os.RemoveAll(c.data()); err != nil {
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

func (c *Cluster) killParts(parts ...Part) error {
	for _, part := range parts {
		if err := c.KillPart(part); err != nil {
			return err
		}
	}
	return nil
}

// SaveData copies the control plane's data for RestoreData, in place of an earlier copy. etcd is suspended meanwhile,
// so that the copy is what a crash would leave.
func (c *Cluster) SaveData() error {
	letGo, err := c.HoldPart(Etcd)
	if err != nil {
		return fmt.Errorf("saving the control plane's data: %w", err)
	}
	err = os.RemoveAll(c.saved())
	if err == nil {
		err = os.CopyFS(c.saved(), os.DirFS(c.data()))
	}
	if err = errors.Join(err, letGo()); err != nil {
		return fmt.Errorf("saving the control plane's data: %w", err)
	}
	return nil
}

// RestoreData restarts the control plane and the operator with the data of SaveData, as one does with the backup of an
// etcd: resource versions go back, and what happened since then is forgotten. It calls meanwhile while the API server
// is down. Real nodes would not notice that their pods are forgotten, so the cluster must have none.
func (c *Cluster) RestoreData(ctx context.Context, meanwhile func()) error {
	if err := c.restoreData(ctx, meanwhile); err != nil {
		return fmt.Errorf("restoring the control plane's data: %w", err)
	}
	return nil
}

func (c *Cluster) restoreData(ctx context.Context, meanwhile func()) error {
	others := []Part{Scheduler, ControllerManager}
	if !c.options.NoOperator {
		others = append(others, Operator)
	}
	if err := c.killParts(append(others, APIServer, Etcd)...); err != nil {
		return err
	}
	meanwhile()
	if err := os.RemoveAll(c.data()); err != nil {
		return err
	}
	if err := os.CopyFS(c.data(), os.DirFS(c.saved())); err != nil {
		return err
	}
	for _, part := range append([]Part{Etcd, APIServer}, others...) {
		if err := c.startPart(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
