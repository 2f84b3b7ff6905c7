package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	"golang.org/x/net/netutil"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/access/certs"
	reviews "heliostat.dev/heliostat/internal/access/kube"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/httpapi"
	"heliostat.dev/heliostat/internal/httpapi/limits"
)

// listenOptions configure the servers: their addresses, TLS, and who may call.
type listenOptions struct {
	listen, metrics, probes, pprof string
	// metricsIfFree logs a warning if the metrics port is in use, instead of failing. It is set if nobody chose the
	// port.
	metricsIfFree bool
	// advertised is the IP address at which other replicas call this one; "" for none.
	advertised string
	noAuth     bool
	certs      certs.Files
	audiences  []string
	perSecond  float64
}

func (o *listenOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.listen, "listen", httpapi.DefaultListen, "address of the REST API and the page; empty for none")
	f.StringVar(&o.metrics, "metrics-bind-address", "", "address that serves only /metrics, without authentication "+
		"(default: the REST API serves it, to callers who may get the path /metrics)")
	f.StringVar(&o.probes, "health-probe-bind-address", "",
		"address that serves only /healthz and /readyz, for the kubelet's probes; the REST API serves both too")
	f.StringVar(&o.pprof, "pprof-bind-address", "",
		"loopback address of /debug/pprof/, the Go profiles of this process; empty for none")
	f.StringVar(&o.certs.Cert, "tls-cert-file", "",
		"PEM file of the REST API's certificate, reloaded when it changes (default: no TLS)")
	f.StringVar(&o.certs.Key, "tls-key-file", "", "PEM file of its private key")
	f.StringVar(&o.certs.ClientCA, "client-ca-file", "", "PEM file of authorities of client certificates; a "+
		"certificate's common name is the user, its organizations are the groups")
	f.StringVar(&o.certs.CA, "tls-ca-file", "", "PEM file of the authorities of the REST API's certificate; "+
		"replicas recognize each other by them while the certificate is renewed; the file may be missing (default: "+
		"the system's)")
	f.StringSliceVar(&o.audiences, "token-audiences", nil, "accepted audiences of bearer tokens (default: those of "+
		"the API server, or "+access.Audience+")")
	f.BoolVar(&o.noAuth, "insecure-no-auth", false, "do not authenticate callers; only on a loopback address")
	f.Float64Var(&o.perSecond, "requests-per-second", limits.DefaultRequestsPerSecond,
		"REST calls per second and caller; 0 for no limit")
	cli.ValidateAddress(f, "listen", &o.listen)
	cli.ValidateAddress(f, "metrics-bind-address", &o.metrics)
	cli.ValidateAddress(f, "health-probe-bind-address", &o.probes)
	cli.ValidateAddress(f, "pprof-bind-address", &o.pprof)
	cli.Validate(f, "requests-per-second", "a number of 0 or more", cli.Within(&o.perSecond, 0, math.MaxFloat64))
	cli.Validate(f, "token-audiences", "a list of strings, each an audience",
		func() bool { return !slices.Contains(o.audiences, "") })
}

func (o *listenOptions) validate() error {
	if err := o.certs.Validate(); err != nil {
		return fmt.Errorf("--tls-cert-file %q, --tls-key-file %q, --client-ca-file %q: %w", o.certs.Cert, o.certs.Key,
			o.certs.ClientCA, err)
	}
	if _, err := netip.ParseAddr(o.advertised); o.advertised != "" && err != nil {
		return fmt.Errorf("--advertise-address %q: want an IP address: %w", o.advertised, err)
	}
	if o.noAuth && o.listen != "" && !httpapi.OnLoopback(o.listen) {
		return fmt.Errorf("--insecure-no-auth would let anybody who reaches %s scale clusters: use a loopback address "+
			"such as %s", o.listen, httpapi.DefaultListen)
	}
	if o.pprof != "" && !httpapi.OnLoopback(o.pprof) {
		return fmt.Errorf("--pprof-bind-address %q: profiles reveal memory and arguments to every caller: use a "+
			"loopback address such as localhost:6060", o.pprof)
	}
	if o.noAuth && (o.certs.ClientCA != "" || len(o.audiences) > 0) {
		return errors.New("--insecure-no-auth disables authentication: it cannot be combined with --client-ca-file " +
			"and --token-audiences")
	}
	return nil
}

// address returns the host and port at which other replicas call this one; empty if they cannot, as on loopback.
func (o *listenOptions) address() string {
	host, port, err := net.SplitHostPort(o.listen)
	if err != nil || o.noAuth || o.advertised == "" || port == "0" {
		return ""
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && (ip.IsUnspecified() || host == o.advertised) {
		return net.JoinHostPort(o.advertised, port)
	}
	return ""
}

// secure adds authentication and TLS to config. It reloads the certificates until ctx ends.
func (o *listenOptions) secure(ctx context.Context, config *httpapi.Config, kubernetes *rest.Config) error {
	config.Listen, config.RequestsPerSecond = o.listen, o.perSecond
	gate := access.Config{}
	if o.certs.Given() {
		store, err := certs.Load(o.certs, config.Log)
		if err != nil {
			return err
		}
		go store.Run(ctx)
		config.TLS, config.Peers = store.TLS(), store.Peers()
		if o.certs.ClientCA != "" {
			gate.ClientCAs = store.ClientCAs
		}
	}
	if o.noAuth {
		return nil
	}
	asked, err := reviews.New(kubernetes, o.audiences)
	if err != nil {
		return err
	}
	gate.Tokens, gate.Rights = asked, asked
	guard, err := access.New(gate)
	if err != nil {
		return err
	}
	config.Access = guard
	o.warn(config.Log)
	return nil
}

// warn logs what the network can read.
func (o *listenOptions) warn(log *slog.Logger) {
	if !o.certs.Given() && !httpapi.OnLoopback(o.listen) {
		log.Warn("callers' tokens are sent in clear text: set --tls-cert-file and --tls-key-file unless a service "+
			"mesh encrypts the traffic", "listen", o.listen)
	}
}

// servers are the running servers; a failure of one of them calls fail.
type servers struct {
	fail    context.CancelCauseFunc
	running []*http.Server
}

// Limits of simultaneous connections. Further ones wait in the kernel's queue until one closes; idle ones close within
// seconds.
const (
	maxConnections      = 2000 // of the REST API: with HTTP/1.1 each stream has its own
	maxConnectionsOther = 100  // of each port for scrapers or kubelets
)

// start listens before it returns, so that it can return the error of a port in use. A server that stops later stops
// the process.
func (s *servers) start(what string, server *http.Server, connections int) error {
	listener, err := net.Listen("tcp", server.Addr)
	if err != nil {
		return fmt.Errorf("listening for %s on %s: %w", what, server.Addr, err)
	}
	s.serve(what, server, listener, connections)
	return nil
}

func (s *servers) serve(what string, server *http.Server, listener net.Listener, connections int) {
	listener = netutil.LimitListener(listener, connections)
	s.running = append(s.running, server)
	go func() {
		err := serveOn(listener, server)
		if !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serving %s on %s: %w", what, server.Addr, err))
		}
	}()
}

func serveOn(listener net.Listener, server *http.Server) error {
	if server.TLSConfig != nil {
		return server.ServeTLS(listener, "", "") // TLSConfig has the certificates
	}
	return server.Serve(listener)
}

// listenSeparately starts the servers with ports of their own: metrics, probes and profiles.
func (o *listenOptions) listenSeparately(
	listening *servers,
	metrics http.Handler,
	ready func() error,
	log *slog.Logger,
) error {
	for _, port := range []struct {
		what, flag string
		server     *http.Server
	}{
		{"metrics", "metrics-bind-address", serverOf(o.metrics, map[string]http.Handler{"/metrics": metrics})},
		{"probes", "health-probe-bind-address", serverOf(o.probes, probes(ready))},
		{"profiles", "pprof-bind-address", profiles(o.pprof)},
	} {
		if port.server.Addr == "" {
			continue
		}
		err := listening.start(port.what, port.server, maxConnectionsOther)
		if err != nil && port.what == "metrics" && o.metricsIfFree {
			log.Warn("the metrics port is in use, so no metrics are served: choose another with "+
				"--metrics-bind-address", "err", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("--%s: %w", port.flag, err)
		}
	}
	return nil
}

// shutdown stops all servers at the same time, so that none uses up the time of another: net/http waits for seconds for
// a connection without a request. After grace it closes all connections.
func (s *servers) shutdown(grace time.Duration) error {
	ctx, done := context.WithTimeout(context.Background(), grace)
	defer done()
	errs := make([]error, len(s.running))
	var all sync.WaitGroup
	for i, server := range s.running {
		all.Go(func() {
			if errs[i] = server.Shutdown(ctx); ctx.Err() != nil {
				errs[i] = server.Close()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// metricsOf returns /metrics in the text format of Prometheus.
func metricsOf(registry *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// serverOf returns a server of a few paths for scrapers and kubelets, whose requests have no body.
func serverOf(address string, paths map[string]http.Handler) *http.Server {
	mux := http.NewServeMux()
	for path, handler := range paths {
		mux.Handle("GET "+path, handler)
	}
	const timeout = 10 * time.Second
	return &http.Server{
		Addr: address, Handler: mux, ReadHeaderTimeout: timeout, ReadTimeout: timeout, WriteTimeout: 3 * timeout,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
}

// profiles returns Go's /debug/pprof/. The caller sets the duration of a profile, so answers have no deadline.
func profiles(address string) *http.Server {
	server := serverOf(address, map[string]http.Handler{
		"/debug/pprof/": http.HandlerFunc(pprof.Index), "/debug/pprof/cmdline": http.HandlerFunc(pprof.Cmdline),
		"/debug/pprof/profile": http.HandlerFunc(pprof.Profile), "/debug/pprof/symbol": http.HandlerFunc(pprof.Symbol),
		"/debug/pprof/trace": http.HandlerFunc(pprof.Trace),
	})
	server.WriteTimeout = 0
	return server
}

// probes returns the handlers of kubelet's probes.
func probes(ready func() error) map[string]http.Handler {
	answer := func(check func() error) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := check(); err != nil {
				http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ok")
		})
	}
	return map[string]http.Handler{"/healthz": answer(func() error { return nil }), "/readyz": answer(ready)}
}
