package head

import (
	"context"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Ray is the head of one Ray cluster.
type Ray interface {
	State(ctx context.Context) (raydemand.State, error)
	Drain(ctx context.Context, drain raydemand.Drain) (raydemand.DrainReply, error)
	Report(ctx context.Context, report raydemand.Report) error
	// ReportClusterConfig replaces the cluster config in the GCS; raydemand.ErrUnsupported if the head is too old for
	// it.
	ReportClusterConfig(ctx context.Context, config raydemand.ClusterConfig) error
	Close() error
}

// Dialer connects to the head of a cluster; address, token and TLS come from cluster.
type Dialer func(ctx context.Context, cluster nodepool.Cluster) (Ray, error)
