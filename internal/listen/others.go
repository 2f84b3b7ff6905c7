package listen

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"
)

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
