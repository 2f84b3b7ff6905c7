package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// DefaultListen is the default address of the server.
const DefaultListen = "127.0.0.1:8090"

// Config is what the server needs. Fleet and Requests are required.
type Config struct {
	// Listen is host:port; empty means DefaultListen.
	Listen string
	// Access authenticates callers and reviews their rights. Nil means no authentication; then Listen must be a
	// loopback address, and the server answers only calls to a loopback name.
	Access Access
	// TLS holds the certificates; nil means no TLS.
	TLS *tls.Config
	// Leadership says which of several replicas leads; nil means that this is the only one. The others pass calls on to
	// the leader. Peers is the TLS configuration of those calls; nil means no TLS.
	Leadership Leadership
	// Division says how several replicas divide the RayClusters; nil means that they do not.
	Division Division
	Peers    *tls.Config
	// RequestsPerSecond limits the calls of each caller; 0 means no limit.
	RequestsPerSecond float64

	Fleet    Fleet
	Requests Requests
	Owned    OwnedRequests
	// Clusters writes to RayClusters. Without it, the server does not serve freeze and manage.
	Clusters ClusterWriter
	// GiveBacks agrees on what RayClusters give back. Without it, the server does not serve give_back.
	GiveBacks GiveBacks
	// History holds past decisions; without it, the history is empty.
	History History
	// Costs holds what RayClusters cost, in Currency; without it, there are none.
	Costs    CostLedger
	Currency string
	// Nodepools reads nodes; without it, calls for them fail as unavailable.
	Nodepools NodepoolReader

	// Metrics and Page serve /metrics and /; nil means 404.
	Metrics, Page http.Handler
	// Ready returns why Heliostat is not ready; nil means that it always is.
	Ready func() error
	// Log gets the details of internal errors, one line for each write, and one debug line for each call; nil discards
	// them.
	Log *slog.Logger
	// Now is the clock for ages; nil means time.Now.
	Now func() time.Time

	// dialLeader replaces TCP in tests.
	dialLeader func(ctx context.Context, network, address string) (net.Conn, error)
}

// Validate returns an error if a required part is missing, or if everybody could call.
func (c Config) Validate() error {
	switch {
	case c.Fleet == nil || c.Requests == nil || c.Owned == nil:
		return errors.New("api.Config needs Fleet, Requests and Owned")
	case c.Access == nil && !OnLoopback(c.Listen):
		return fmt.Errorf("listening on %q without authentication would let everybody who reaches it scale clusters; "+
			"use a loopback address such as %s", c.Listen, DefaultListen)
	}
	return nil
}

// OnLoopback reports whether listen, which is host:port or empty, is reachable from this machine only.
func OnLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(cmp.Or(listen, DefaultListen))
	return err == nil && isLoopback(host)
}

// Requests stores the plain request of each RayCluster, in the cluster's annotation.
//
// Both methods return nodepool.ErrGone if there is no such cluster, and ErrUnavailable if Kubernetes is not reachable.
// SetResourceRequests also returns nodepool.ErrConflict and nodepool.ErrTooLarge.
type Requests interface {
	// ResourceRequests returns the request and its start; the start is zero if it is unknown.
	ResourceRequests(ctx context.Context, key nodepool.ClusterKey) ([]raydemand.Request, time.Time, error)
	// SetResourceRequests replaces the request and its start, which is zero if it is unknown. An empty request clears
	// it.
	SetResourceRequests(
		ctx context.Context, key nodepool.ClusterKey, requests []raydemand.Request, since time.Time,
	) error
}

// OwnedRequests stores requests with owners. Put and Delete call may with the stored request (nil if there is
// none) right before they write, and return its error. All methods return the errors of package nodepool:
// ErrNoRequests, ErrGone, ErrNoRequest, ErrRequestElsewhere, ErrRequestRefused and ErrConflict.
type OwnedRequests interface {
	// All lists the requests of a namespace, or of all if it is empty; List those of one cluster.
	All(namespace string) ([]nodepool.OwnedRequest, error)
	List(key nodepool.ClusterKey) ([]nodepool.OwnedRequest, error)
	Get(key nodepool.ClusterKey, id string) (nodepool.OwnedRequest, error)
	// Put creates or replaces a request, which renews its lease, and reports which.
	Put(
		ctx context.Context, wanted nodepool.OwnedRequest, may Permit,
	) (stored nodepool.OwnedRequest, created bool, err error)
	Delete(ctx context.Context, key nodepool.ClusterKey, id string, may Permit) error
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
}

// History holds the last decisions about each RayCluster.
type History interface {
	// Entries returns the decisions about a cluster, newest first. Callers must not change them.
	Entries(key nodepool.ClusterKey) []apiv1.HistoryEntry
	// Past returns the snapshot of a decision as JSON; false if it is not stored any more.
	Past(key nodepool.ClusterKey, id string) (snapshot json.RawMessage, known bool, err error)
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
