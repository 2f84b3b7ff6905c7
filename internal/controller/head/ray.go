package head

import (
	"context"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Ray is one Ray cluster's head.
type Ray interface {
	State(ctx context.Context) (raydemand.State, error)
	Drain(ctx context.Context, drain raydemand.Drain) (raydemand.DrainReply, error)
	Report(ctx context.Context, report raydemand.Report) error
	// ReportClusterConfig replaces the cluster config in the GCS; raydemand.ErrUnsupported where the head is too old
	// for it.
	ReportClusterConfig(ctx context.Context, config raydemand.ClusterConfig) error
	Close() error
}

// Dialer connects to the head of a cluster as it stands now: address, token and TLS come from the value.
type Dialer func(ctx context.Context, cluster nodepool.Cluster) (Ray, error)
