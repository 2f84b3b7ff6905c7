package httpapi

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
	"net/netip"
	"strconv"
	"time"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/series"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// DefaultListen is where the server listens unless told otherwise.
const DefaultListen = "127.0.0.1:8090"

// Fleet knows the last cycle of every RayCluster.
type Fleet interface {
	// Views returns one View per cluster, in any order. The server changes nothing in them.
	Views() []View
	// View returns one cluster's; false when there is no such cluster.
	View(key nodepool.ClusterKey) (View, bool)
}

// Lines knows how demand and capacity of each RayCluster went lately.
type Lines interface {
	// Points returns the cluster's points, oldest first; none where nothing was seen yet.
	Points(key nodepool.ClusterKey) []series.Point
}

// Requests keeps what was requested over REST, one request per RayCluster, in the cluster's annotation.
//
// Both methods fail with nodepool.ErrGone when there is no such cluster; Set also with nodepool.ErrConflict and
// nodepool.ErrTooLarge. ErrUnavailable says that Kubernetes cannot be asked now.
type Requests interface {
	// Get returns what is kept and since when; zero where that is not known.
	Get(ctx context.Context, key nodepool.ClusterKey) ([]raydemand.Request, time.Time, error)
	// Set replaces what is kept, and since when it is asked for; zero is not known. Nothing clears it.
	Set(ctx context.Context, key nodepool.ClusterKey, requests []raydemand.Request, since time.Time) error
}

// Access knows who calls, and what a caller may do. Errors are those of package access.
type Access interface {
	Authenticate(*http.Request) (access.Caller, error)
	Authorize(context.Context, access.Caller, access.Right) error
}

// ErrUnavailable says that something the answer depends on cannot be reached now; the caller may try again.
var ErrUnavailable = errors.New("not available now")

// Config is what the server needs. Fleet and Requests are required.
type Config struct {
	// Listen is host:port; empty means DefaultListen.
	Listen string
	// Access says who calls and what they may. Nil asks nobody, and then Listen must be a loopback address, where only
	// calls to a loopback name are answered.
	Access Access
	// TLS is served where it is not nil; it holds the certificates.
	TLS *tls.Config
	// Leadership says which of several replicas decides, to which the others pass calls on; nil where this is the only one. Peers is how
	// that one is called; nil speaks no TLS.
	Leadership Leadership
	Peers      *tls.Config
	// RequestsPerSecond bounds the calls of each caller; 0 for as many as they like.
	RequestsPerSecond float64

	Fleet    Fleet
	Requests Requests
	// Owned keeps requests of owners; nil keeps none.
	Owned OwnedRequests
	// Freezer writes freezes; nil serves none.
	Freezer Freezer
	// Modes writes modes; nil serves none.
	Modes ModeSetter
	// Series is what the page draws; nil serves empty series.
	Series Lines

	// History is what was decided lately; nil remembers nothing. Nodepools reads nodes; nil serves none. Hub sends events; nil
	// sends none. The server gives the hub its fleet, and ends it with itself.
	History   History
	Nodepools NodepoolReader
	Hub       *Hub
	// Shadow compares the plans for clusters that somebody else scales; nil compares nothing.
	Shadow Comparer

	// Metrics and Page serve /metrics and /; nil means 404.
	Metrics, Page http.Handler
	// Ready says why Heliostat is not ready; nil means that it always is.
	Ready func() error
	// Log gets errors that callers are not told, and one debug line per call; nil discards.
	Log *slog.Logger
	// Now is the clock by which ages are told; nil means time.Now.
	Now func() time.Time
}

// Validate names the first field that is wrong.
func (c Config) Validate() error {
	if c.Fleet == nil {
		return errors.New("httpapi.Config.Fleet is required")
	}
	if c.Requests == nil {
		return errors.New("httpapi.Config.Requests is required")
	}
	host, port, err := net.SplitHostPort(c.listen())
	if err != nil {
		return fmt.Errorf("reading listen address %q: %w; write host:port", c.Listen, err)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("reading listen address %q: port %q is not a number up to 65535", c.Listen, port)
	}
	if !(c.RequestsPerSecond >= 0) || math.IsInf(c.RequestsPerSecond, 1) { // NaN is neither below 0 nor above
		return fmt.Errorf("requests per second are %g; want a number of at least 0, which is no limit", c.RequestsPerSecond)
	}
	if c.Access != nil || isLoopback(host) {
		return nil
	}
	return fmt.Errorf("listening on %q without authentication would let anybody who reaches it scale clusters; "+
		"use a loopback address such as %s", c.Listen, DefaultListen)
}

func (c Config) listen() string {
	if c.Listen == "" {
		return DefaultListen
	}
	return c.Listen
}

// OnLoopback reports whether listen, host:port or empty, is reached from this machine alone.
func OnLoopback(listen string) bool {
	host, _, err := net.SplitHostPort(cmp.Or(listen, DefaultListen))
	return err == nil && isLoopback(host)
}

// isLoopback reports whether host can only mean this machine. An empty host means every address. Names other than
// localhost are not resolved: what they mean can change.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
