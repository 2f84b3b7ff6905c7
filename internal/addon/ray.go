package addon

import (
	"context"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Ray is the head of one Ray cluster.
type Ray interface {
	State(ctx context.Context) (raydemand.State, error)
	// Repeats is State without Nodes if the state has this fingerprint, which must not be 0.
	Repeats(ctx context.Context, fingerprint uint64) (raydemand.State, error)
	Drain(ctx context.Context, drain raydemand.Drain) (raydemand.DrainReply, error)
	Report(ctx context.Context, report raydemand.Report) error
	// Occupants reads what lives in the Ray cluster, which takes whole tables of the GCS.
	Occupants(ctx context.Context) (raydemand.Occupants, error)
	// Residents reads the actors that have a place on a node, which takes the whole actor table of the GCS.
	Residents(ctx context.Context) ([]raydemand.Resident, error)
	Close() error
}

// Dialer connects to the head of a cluster; address, token and TLS come from cluster.
type Dialer func(ctx context.Context, cluster nodepool.Cluster) (Ray, error)
