package devcluster

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/test/devcluster/nodeagent"
)

// Dir is the cluster's directory.
func (c *Cluster) Dir() string { return c.claim.dir }

// Logs is the directory with a log of every part and every container.
func (c *Cluster) Logs() string { return filepath.Join(c.Dir(), logsDir) }

// Kubeconfig is the path of the administrator's kubeconfig, which is self-contained.
func (c *Cluster) Kubeconfig() string { return c.plane.kubeconfig() }

// RESTConfig returns a copy of the administrator's client configuration.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Client returns an administrator's client of the built-in API.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Dynamic returns an administrator's client of every API, including RayClusters.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// Agent returns the agent of the nodes whose pods are processes, or nil if there are none.
func (c *Cluster) Agent() *nodeagent.Agent { return c.agent }

// Host is the control plane's loopback address, which no other cluster uses. A program under test can listen there
// without a conflict.
func (c *Cluster) Host() string { return c.plane.host }

// APIServer is the host:port of the API server.
func (c *Cluster) APIServer() string { return c.plane.address("apiserver") }

// Etcd is the host:port of etcd, which serves clients without TLS.
func (c *Cluster) Etcd() string { return c.plane.address("etcd") }

// RayEnv is the directory of the virtual environment of a Ray version from the options, or "".
func (c *Cluster) RayEnv(version string) string { return c.kit.RayEnv(version) }

// Bin is the path of the program of a part from the options, or "".
func (c *Cluster) Bin(part Part) string { return c.kit.Bin(part) }

// Deaths reports parts that end by themselves after the cluster is ready. Only RestartPart restarts them.
func (c *Cluster) Deaths() <-chan Death { return c.deaths }

// Running returns the parts whose process runs, sorted.
func (c *Cluster) Running() []Part {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []Part
	for part, p := range c.processes {
		select {
		case <-p.exited:
		default:
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	return parts
}

// KillPart kills a part, like a crash, and returns when it is gone. Its data stays.
func (c *Cluster) KillPart(part Part) error {
	c.mu.Lock()
	p := c.processes[part]
	c.mu.Unlock()
	if p == nil {
		return fmt.Errorf("killing %s: this cluster has none", part)
	}
	return p.kill()
}

// HoldPart suspends a part, so that it answers nobody and its connections stay open, until the caller calls the
// function that it returns.
func (c *Cluster) HoldPart(part Part) (letGo func() error, err error) {
	c.mu.Lock()
	p := c.processes[part]
	c.mu.Unlock()
	if p == nil {
		return nil, fmt.Errorf("holding %s: this cluster has none", part)
	}
	return func() error { return p.signal(syscall.SIGCONT) }, p.signal(syscall.SIGSTOP)
}

// RestartPart starts a part again with the same ports and data, and returns when it is ready. It first kills a part
// that still runs.
func (c *Cluster) RestartPart(ctx context.Context, part Part) error {
	if err := c.KillPart(part); err != nil {
		return err
	}
	if err := c.startPart(ctx, part); err != nil {
		return fmt.Errorf("restarting %s: %w", part, err)
	}
	return nil
}
