package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/access"
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/cli"
)

// portFlags configure the servers: their addresses, TLS, and who may call. Addresses are host:port; there is no server
// for an empty one. A command may set the exported fields itself; before AddTo, REST and Metrics are defaults.
type portFlags struct {
	// REST is the address of the REST API and the page.
	REST string
	// Metrics is the address that serves only /metrics.
	Metrics string
	// MetricsIfFree logs a warning if the port of Metrics is in use, instead of failing. Set it if the user
	// did not choose the port.
	MetricsIfFree bool
	// Advertised is the IP address at which other replicas call this one; empty for none. AddTo adds no flag for it,
	// because a sidecar has no other replica.
	Advertised string

	probes, pprof string
	noAuth        bool
	cert, key     string
	audiences     []string
	perSecond     float64
}

// AddTo adds the flags to those of a command, with a check of each value. Validate checks how they go together.
func (f *portFlags) AddTo(flags *pflag.FlagSet) {
	cli.Address(flags, &f.REST, "listen", "address of the REST API and the page; empty for none")
	flags.BoolVar(&f.noAuth, "insecure-no-auth", false, "do not authenticate callers; only on a loopback address")
	flags.StringVar(&f.cert, "tls-cert-file", "",
		"PEM file of the REST API's certificate, reloaded when it changes (default: no TLS); its authorities are "+
			"those in ca.crt beside it, or the system's")
	flags.StringVar(&f.key, "tls-key-file", "", "PEM file of its private key")
	flags.StringSliceVar(&f.audiences, "token-audiences", nil,
		"accepted audiences of bearer tokens (default: those of the API server, or "+access.Audience+")")
	f.perSecond = api.DefaultRequestsPerSecond
	cli.Number(flags, &f.perSecond, "requests-per-second", 0, 1e6, "REST calls per second and caller; 0 for no limit")
	cli.Address(flags, &f.Metrics, "metrics-bind-address",
		"address that serves only /metrics, without authentication (default: the REST API serves it, to callers who "+
			"may get the path /metrics)")
	cli.Address(flags, &f.probes, "health-probe-bind-address",
		"address that serves only /healthz and /readyz, for the kubelet's probes; the REST API serves both too")
	cli.Address(flags, &f.pprof, "pprof-bind-address",
		"loopback address of /debug/pprof/, the Go profiles of this process; empty for none")
}

// Validate returns an error that names the flags if they would let any caller in, or do not go together.
func (f *portFlags) Validate() error {
	if (f.cert == "") != (f.key == "") {
		return fmt.Errorf("--tls-cert-file %q, --tls-key-file %q: a certificate and its key go together: give both "+
			"files", f.cert, f.key)
	}
	if _, err := netip.ParseAddr(f.Advertised); f.Advertised != "" && err != nil {
		return fmt.Errorf("--advertise-address %q: want an IP address such as 10.0.0.7", f.Advertised)
	}
	if slices.Contains(f.audiences, "") {
		return fmt.Errorf("--token-audiences %q: want a list of strings, each an audience", f.audiences)
	}
	if f.noAuth && f.REST != "" && !api.OnLoopback(f.REST) {
		return fmt.Errorf("--insecure-no-auth would let anybody who reaches %s scale clusters: use a loopback address "+
			"such as %s", f.REST, api.DefaultListen)
	}
	if f.pprof != "" && !api.OnLoopback(f.pprof) {
		return fmt.Errorf("--pprof-bind-address %q: profiles reveal memory and arguments to every caller: use a "+
			"loopback address such as localhost:6060", f.pprof)
	}
	if f.noAuth && len(f.audiences) > 0 {
		return errors.New("--insecure-no-auth disables authentication: it cannot be combined with --token-audiences")
	}
	return nil
}

// PeerAddress returns the host and port at which other replicas call the REST API of this one; empty if they cannot, as
// on loopback.
func (f *portFlags) PeerAddress() string {
	host, port, err := net.SplitHostPort(f.REST)
	if err != nil || f.noAuth || f.Advertised == "" || port == "0" {
		return ""
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && (ip.IsUnspecified() || host == f.Advertised) {
		return net.JoinHostPort(f.Advertised, port)
	}
	return ""
}

// Secure sets the address, the calls per second, TLS and authentication of config. It reads the certificates, and
// reloads them until ctx ends. The API server of kubernetes reviews callers when they call. Secure fails if a file or
// the configuration of that API server cannot be used.
func (f *portFlags) Secure(ctx context.Context, config *api.Config, kubernetes *rest.Config) error {
	config.Listen, config.RequestsPerSecond = f.REST, f.perSecond
	if f.cert != "" {
		store, err := loadCertificates(f.cert, f.key)
		if err != nil {
			return err
		}
		go func() {
			if err := store.watcher.Start(ctx); err != nil && ctx.Err() == nil {
				config.Log.Error("the certificate is not reloaded any more", "err", err)
			}
		}()
		config.TLS, config.Peers = store.TLS(), store.Peers()
	}
	if f.noAuth {
		return nil
	}
	gate, err := newGate(kubernetes, f.audiences)
	if err != nil {
		return err
	}
	config.Access = gate
	f.warn(config.Log)
	return nil
}

// warn logs what the network can read.
func (f *portFlags) warn(log *slog.Logger) {
	if f.cert == "" && !api.OnLoopback(f.REST) {
		log.Warn("callers' tokens are sent in clear text: set --tls-cert-file and --tls-key-file unless a service "+
			"mesh encrypts the traffic", "listen", f.REST)
	}
}
