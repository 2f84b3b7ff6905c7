package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

// servers are the running servers. Only one goroutine may use them.
type servers struct {
	fail    context.CancelCauseFunc // gets the reason of one that stops before Shutdown
	running []*http.Server
}

// Limits of simultaneous connections. Further ones wait in the kernel's queue until one closes; idle ones close within
// seconds.
const (
	maxConnections      = 2000 // of the REST API: with HTTP/1.1 each stream has its own
	maxConnectionsOther = 100  // of each port for scrapers or kubelets
)

// StartREST starts the server of the REST API at its own address, with its own TLS. It listens before it returns, so an
// error may be a port in use.
func (s *servers) StartREST(server *http.Server) error {
	if err := s.start("REST", server, maxConnections); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	return nil
}

// StartOthers starts the servers with ports of their own: metrics, probes, which report the error of ready, and
// profiles. It listens before it returns; an error names the flag of the port, which may be in use.
func (s *servers) StartOthers(flags *portFlags, metrics http.Handler, ready func() error, log *slog.Logger) error {
	for _, port := range []struct {
		what, flag string
		server     *http.Server
	}{
		{"metrics", "metrics-bind-address", serverOf(flags.Metrics, map[string]http.Handler{"/metrics": metrics})},
		{"probes", "health-probe-bind-address", serverOf(flags.probes, Probes(ready))},
		{"profiles", "pprof-bind-address", profiles(flags.pprof)},
	} {
		if port.server.Addr == "" {
			continue
		}
		err := s.start(port.what, port.server, maxConnectionsOther)
		if err != nil && port.what == "metrics" && flags.MetricsIfFree {
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

// Shutdown stops all servers at the same time, so that none uses up the time of another: net/http waits for seconds for
// a connection without a request. After grace it closes all connections. It returns the errors of all servers.
func (s *servers) Shutdown(grace time.Duration) error {
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

// Probes returns the handlers of kubelet's probes by their paths, /healthz and /readyz. The latter answers 503 with the
// error of ready, if there is one.
func Probes(ready func() error) map[string]http.Handler {
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
