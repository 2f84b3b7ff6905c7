package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

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

// ErrUnavailable says that something the answer depends on cannot be reached now; the caller may try again.
var ErrUnavailable = errors.New("not available now")

// Config is what the server needs. Fleet and Requests are required.
type Config struct {
	// Listen is host:port; empty means DefaultListen. The host must be a loopback address, because this form of the
	// API has no authentication, unless InsecureListenAnywhere says that something else guards the port.
	Listen                 string
	InsecureListenAnywhere bool

	Fleet    Fleet
	Requests Requests

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
	if c.InsecureListenAnywhere || isLoopback(host) {
		return nil
	}
	return fmt.Errorf("listening on %q would let anybody who reaches it scale clusters: there is no authentication yet; "+
		"use a loopback address such as %s, or say --insecure-listen-anywhere where the network guards the port", c.Listen, DefaultListen)
}

func (c Config) listen() string {
	if c.Listen == "" {
		return DefaultListen
	}
	return c.Listen
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
