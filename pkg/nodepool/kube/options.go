package kube

import (
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// Options configure a Manager.
type Options struct {
	// Namespaces are those whose RayClusters are served; empty means all.
	Namespaces []string
	// LeaderElection allows several processes, of which one writes. The lease is LeaseNamespace/LeaseName.
	LeaderElection            bool
	LeaseNamespace, LeaseName string
	// Sharded divides the RayClusters among all processes, of which each has a Lease in LeaseNamespace whose name
	// begins with LeaseName. It excludes LeaderElection and Single.
	Sharded bool
	// Address is where the other processes reach this one while it leads, an IP address and a port; empty means
	// nowhere. It is part of the holder's identity in the lease.
	Address string
	// Single serves one RayCluster with the verbs that KubeRay's own Role grants (pods: get, list, watch; rayclusters:
	// get, patch): it polls the RayCluster, there is no lease, and events go to the log. It excludes LeaderElection and
	// Namespaces.
	Single *nodepool.ClusterKey
	// Poll is how often the single form reads its RayCluster; zero means reflector.DefaultPoll.
	Poll time.Duration
	// KubernetesTokenFile holds the token for heads with enableK8sTokenAuth, of a ServiceAccount that may do ray:write
	// and nothing else: each such head can read it. If it is empty, Heliostat does not call those heads.
	KubernetesTokenFile string
	// Pools configure the pools of nodes; pods can be placed on their declared shapes.
	Pools landing.Config
	// StatusNamespace is where the Cluster Autoscaler writes its status; empty means kube-system.
	StatusNamespace string
	// GPUs says how nodes are read: the meaning of additional resources, and the label that names a node's pool.
	GPUs sharing.Reader
	// Provisioning reads and writes ProvisioningRequests for groups that ask for them. It has no effect with Single.
	Provisioning bool
	// WarmNodes reads and writes CapacityBuffers for groups of which a policy wants warm nodes. It has no effect with
	// Single.
	WarmNodes bool
	// ReadOnly rejects every write to RayClusters and ResourceRequests with nodepool.ErrReadOnly, including those of
	// users' calls.
	ReadOnly bool
	// Logger is required.
	Logger *slog.Logger
}

// writable returns nil, or why nothing may be written.
func (o *Options) writable() error {
	if o.ReadOnly {
		return fmt.Errorf("%w: this Heliostat runs with --read-only", nodepool.ErrReadOnly)
	}
	return nil
}

// Validate returns an error for the first option that does not go together with another one.
func (o Options) Validate() error {
	switch {
	case o.Sharded && len(validation.IsValidLabelValue(o.LeaseName)) > 0:
		return fmt.Errorf("options: LeaseName %q: want at most 63 characters with shards, because it is a label of "+
			"their Leases", o.LeaseName)
	case o.LeaderElection && o.Sharded:
		return fmt.Errorf("options: Sharded excludes LeaderElection")
	}
	if o.Address != "" {
		if _, err := netip.ParseAddrPort(o.Address); err != nil {
			return fmt.Errorf("options: Address %q: want an IP address and a port: %w", o.Address, err)
		}
	}
	return nil
}
