package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"
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
	// Owned stores requests with owners; nil means that there are none.
	Owned OwnedRequests
	// Clusters writes to RayClusters. Without it, the server does not serve freeze, manage and resume, and only shows
	// capacity policies.
	Clusters ClusterWriter
	// GiveBacks agrees on what RayClusters give back. Without it, the server does not serve give_back.
	GiveBacks GiveBacks
	// Series holds the points of the page's charts; without it, they are empty.
	Series *Charts
	// History holds past decisions; without it, the history is empty.
	History History
	// Costs holds what RayClusters cost, in Currency; without it, there are none.
	Costs    CostLedger
	Currency string
	// Nodepools reads nodes; without it, calls for them fail as unavailable.
	Nodepools NodepoolReader
	// Hub sends events; without it, streams fail as unavailable. The server sets its fleet and closes it at shutdown.
	Hub *Hub
	// Shadow compares plans with what others write; without it, comparisons are empty.
	Shadow Comparer

	// Metrics and Page serve /metrics and /; nil means 404.
	Metrics, Page http.Handler
	// Ready returns why Heliostat is not ready; nil means that it always is.
	Ready func() error
	// Bounds gets a function that returns how much of each bound of the server is in use, from 0 to 1; nil means that
	// nobody asks.
	Bounds func(used func() map[string]float64)
	// Log gets the details of internal errors, one line for each write, and one debug line for each call; nil discards
	// them.
	Log *slog.Logger
	// Now is the clock for ages; nil means time.Now.
	Now func() time.Time

	// dialLeader replaces TCP in tests.
	dialLeader func(ctx context.Context, network, address string) (net.Conn, error)
}

// Validate returns an error about the first bad field.
func (c Config) Validate() error {
	if c.Fleet == nil {
		return errors.New("api.Config.Fleet is required")
	}
	if c.Requests == nil {
		return errors.New("api.Config.Requests is required")
	}
	host, port, err := net.SplitHostPort(c.listen())
	if err != nil {
		return fmt.Errorf("reading listen address %q: %w; write host:port", c.Listen, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("reading listen address %q: port %q is not a number up to 65535", c.Listen, port)
	}
	if !(c.RequestsPerSecond >= 0) || math.IsInf(c.RequestsPerSecond, 1) { // NaN is neither below 0 nor above
		return fmt.Errorf(
			"requests per second are %g; want a number of at least 0, which means no limit", c.RequestsPerSecond,
		)
	}
	if c.Access != nil || isLoopback(host) {
		return nil
	}
	return fmt.Errorf("listening on %q without authentication would let everybody who reaches it scale clusters; "+
		"use a loopback address such as %s", c.Listen, DefaultListen)
}

func (c Config) listen() string { return cmp.Or(c.Listen, DefaultListen) }

// OnLoopback reports whether listen, which is host:port or empty, is reachable from this machine only.
func OnLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(cmp.Or(listen, DefaultListen))
	return err == nil && isLoopback(host)
}
