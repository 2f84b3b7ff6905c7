package api

import (
	"context"
	"encoding/json"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Requests stores the plain request of each RayCluster, in the cluster's annotation.
//
// Both methods return nodepool.ErrGone if there is no such cluster, and ErrUnavailable if Kubernetes is not reachable.
// Set also returns nodepool.ErrConflict and nodepool.ErrTooLarge.
type Requests interface {
	// Get returns the request and its start; the start is zero if it is unknown.
	Get(ctx context.Context, key nodepool.ClusterKey) ([]raydemand.Request, time.Time, error)
	// Set replaces the request and its start, which is zero if it is unknown. An empty request clears it.
	Set(ctx context.Context, key nodepool.ClusterKey, requests []raydemand.Request, since time.Time) error
}

// OwnedRequests stores requests with owners. Put, Renew and Delete call may with the stored request (nil if there is
// none) right before they write, and return its error. All methods return the errors of package nodepool:
// ErrNoRequests, ErrGone, ErrNoRequest, ErrRequestElsewhere, ErrRequestRefused and ErrConflict.
type OwnedRequests interface {
	// All lists the requests of a namespace, or of all if it is empty; List those of one cluster.
	All(namespace string) ([]nodepool.OwnedRequest, error)
	List(key nodepool.ClusterKey) ([]nodepool.OwnedRequest, error)
	Get(key nodepool.ClusterKey, id string) (nodepool.OwnedRequest, error)
	// Put creates or replaces a request, and reports which.
	Put(
		ctx context.Context, wanted nodepool.OwnedRequest, may Permit,
	) (stored nodepool.OwnedRequest, created bool, err error)
	Renew(
		ctx context.Context, key nodepool.ClusterKey, id string, now time.Time, may Permit,
	) (nodepool.OwnedRequest, error)
	Delete(ctx context.Context, key nodepool.ClusterKey, id string, may Permit) error
	// Changes returns a channel that is closed when the request changes or is deleted; nil if there is no such request.
	Changes(key nodepool.ClusterKey, id string) <-chan struct{}
}

// Permit returns an error if a write to the stored request is not allowed. stored is nil if there is none.
type Permit = func(stored *nodepool.OwnedRequest) error

// ClusterWriter writes to RayClusters what callers set. Its methods return nodepool.ErrGone if there is no such
// cluster.
type ClusterWriter interface {
	// SetFreeze stops all writes to a cluster, or resumes them.
	SetFreeze(ctx context.Context, key nodepool.ClusterKey, frozen bool) error
	// SetMode sets the annotation heliostat.dev/mode.
	SetMode(ctx context.Context, key nodepool.ClusterKey, mode nodepool.Mode) error
	// SetCapacityPolicy replaces the annotation; nil removes it.
	SetCapacityPolicy(ctx context.Context, key nodepool.ClusterKey, policy *capacity.Policy) error
	// Resume resumes a cluster that was suspended because it was idle. It returns nodepool.ErrReadOnly if somebody else
	// suspended it.
	Resume(ctx context.Context, key nodepool.ClusterKey) error
}

// History holds the last decisions about each RayCluster.
type History interface {
	// Entries returns the decisions about a cluster, newest first. Callers must not change them.
	Entries(key nodepool.ClusterKey) []apiv1.HistoryEntry
	// Past returns the snapshot and the plan of a decision as JSON; false if it is not stored any more.
	Past(key nodepool.ClusterKey, id string) (snapshot, plan json.RawMessage, known bool, err error)
}

// NodepoolReader reads the nodes of the Kubernetes cluster and their pools.
type NodepoolReader interface {
	// Nodepools may return a recent result. It returns ErrUnavailable if Kubernetes is not reachable.
	Nodepools(ctx context.Context) (apiv1.NodepoolsReport, error)
}

// CostLedger holds what the workers of RayClusters cost.
type CostLedger interface {
	// Rows returns what was spent until now, sorted by RayCluster.
	Rows(now time.Time) []ledger.Row
	// Idle returns since when something in a RayCluster is idle, and what that has cost until now.
	Idle(key nodepool.ClusterKey, now time.Time) ledger.Streak
	// Since returns since when costs count; now if none do.
	Since(now time.Time) time.Time
}

// Comparer compares Heliostat's plans with what another autoscaler writes.
type Comparer interface {
	// Comparison returns the comparison of a cluster; it has no groups if there is none.
	Comparison(key nodepool.ClusterKey) apiv1.ShadowComparison
}
