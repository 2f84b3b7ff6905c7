package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/addon/costs"
	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/internal/webui"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/price"
)

// gcPercent trades CPU for memory: between collections, a live heap of 15 MiB grows by half instead of doubling. GOGC
// in the environment overrides it.
const gcPercent = 50

// shutdownGrace is how long work may continue after a signal: a moment longer than REST calls take to finish.
const shutdownGrace = api.FinishWithin + time.Second

// run serves until ctx ends. It checks the flags before anything starts.
func (o *options) run(c *cobra.Command) error {
	ctx := c.Context()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	local, err := telemetry.NewLogger(c.ErrOrStderr(), o.logFormat, o.logLevel)
	if err != nil {
		return cli.BadInput(err)
	}
	telemetry.AdoptLibraries(local)
	telemetry.AdoptGRPC()
	o.kube.Logger = local
	if err := o.ports.Validate(); err != nil {
		return cli.BadInput(err)
	}
	if o.kube.LeaderElection || o.kube.Sharded {
		o.kube.Address = o.ports.PeerAddress()
	}
	if o.kube.GPUs, err = o.nodes.Reader(); err != nil {
		return err
	}
	if err := o.kube.Validate(); err != nil {
		return cli.BadInput(err)
	}
	config, err := o.restConfig()
	if err != nil {
		return cli.BadInput(err)
	}
	config.QPS = o.apiQPS
	// Replicas add a name of their own.
	config.UserAgent = fmt.Sprintf("heliostat/%s (%s/%s)", api.Release, runtime.GOOS, runtime.GOARCH)
	if o.kube.Single != nil {
		err := waitWhileParked(ctx, config, *o.kube.Single, parkedPoll, local)
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector())
	tel, err := telemetry.Start(ctx, telemetry.Config{
		Registerer: registry,
		Getenv:     os.Getenv,
		Version:    api.Release,
		Log:        local,
		Leads:      o.ready.leads,
		Division:   o.ready.division,
	})
	if err != nil {
		return cli.BadInput(err)
	}
	defer endTelemetry(tel, local)
	o.loop.Log, o.log = local, local
	o.tel, o.rest, o.registry = tel, config, registry
	defer keepMemory(local)()
	local.Info("API server found", "host", config.Host)
	config.Wrap(tel.APICalls)
	return o.serve(ctx)
}

// serve runs the servers and the loop; if one of them stops, all stop.
func (o *options) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.park = func() { cancel(errParked) }
	servers := &servers{fail: cancel}
	err := o.work(ctx, servers)
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return errors.Join(err, servers.Shutdown(shutdownGrace))
}

// work waits for the API server, and then runs the loop until ctx ends. It answers probes from the beginning, because
// kubelet must not kill a process that waits.
func (o *options) work(ctx context.Context, servers *servers) error {
	log := o.log
	if err := servers.StartOthers(&o.ports, metricsOf(o.registry), o.ready.check, log); err != nil {
		return cli.BadInput(err)
	}
	manager, err := kube.Connect(ctx, o.rest, o.kube, log)
	if err != nil && ctx.Err() != nil {
		return nil // serve returns the cause
	}
	if err != nil {
		return err
	}
	o.ready.manager.Store(manager)
	o.loop.Addons = o.addons(manager, o.passOn(log, o.tel))
	o.loop.Owned = manager.OwnedRequests()
	loop := controller.New(manager, o.dialer(manager), o.loop)
	defer loop.Close()
	manager.WatchOthers(loop.Watch)
	if err := o.listen(ctx, servers, manager, loop); err != nil {
		return cli.BadInput(err)
	}
	log.Info("serving", "form", string(o.loop.Form), "listen", o.ports.REST)
	return manager.Start(ctx, traced(loop, o.tel.Tracer))
}

// passOn passes decisions to telemetry, costs and history. It returns the prices of nodes.
func (o *options) passOn(log *slog.Logger, tel *telemetry.Telemetry) *price.Book {
	o.past = newHistory(0, 0)
	book := price.Of(o.kube.Pools, o.kube.GPUs.Names)
	o.costs = costs.New(book)
	o.loop.Published = func(d *addon.Decision) {
		tel.Observe(d, func() []ledger.Row { return o.costs.Ledger.Counters(d.Cluster) }, book.Unit())
		o.costs.Observe(d)
		if err := o.past.Observe(d); err != nil {
			log.Error("cannot record a decision in the history", "cluster", d.Cluster.String(), "err", err)
		}
		o.parkIf(d)
	}
	o.loop.Forgotten = func(key nodepool.ClusterKey) {
		tel.Forget(key)
		o.costs.Ledger.End(key, time.Now())
		o.past.Forget(key)
	}
	return book
}

// endTelemetry exports the remaining telemetry. It only logs a failure.
func endTelemetry(tel *telemetry.Telemetry, log *slog.Logger) {
	grace, done := context.WithTimeout(context.Background(), shutdownGrace)
	defer done()
	if err := tel.Shutdown(grace); err != nil {
		log.Warn("telemetry", "err", err)
	}
}

// listen starts the REST API if --listen is not empty.
func (o *options) listen(
	ctx context.Context, servers *servers, manager *kube.Manager, loop *controller.Controller,
) error {
	if o.ports.REST == "" {
		return nil
	}
	served := api.Config{
		Fleet:      Fleet{Loop: loop},
		Requests:   manager,
		Owned:      manager.OwnedRequests(),
		Clusters:   manager,
		GiveBacks:  o.giveBack,
		Page:       webui.Handler(),
		Ready:      o.ready.check,
		Log:        o.log,
		Leadership: newLeadership(manager, loop),
	}
	served.History = o.past
	served.Costs, served.Currency = o.costs.Ledger, cmp.Or(o.kube.Pools.Currency, price.DefaultCurrency)
	if member := manager.Shards(); member != nil {
		served.Division = member
		served.Fleet = Fleet{Loop: loop, Shard: member.ID()}
	}
	if o.kube.Single == nil {
		served.Nodepools = newNodepools(o.rest, o.kube)
	}
	if o.ports.Metrics == "" {
		served.Metrics = metricsOf(o.registry)
	}
	if err := o.ports.Secure(ctx, &served, o.rest); err != nil {
		return err
	}
	server, err := api.NewServer(served)
	if err != nil {
		return err
	}
	return servers.StartREST(server)
}

// metricsOf returns /metrics in the text format of Prometheus.
func metricsOf(registry *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// restConfig finds the API server as kubectl does. A sidecar has the environment of the user's Ray, which may name
// another API server, so it uses only the flag and the pod's service account.
func (o *options) restConfig() (*rest.Config, error) {
	if o.kubeconfig != "" || o.loop.Form == controller.Fleet {
		return cli.KubeFlags{Kubeconfig: o.kubeconfig}.Config()
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w; outside a pod, give --kubeconfig", err)
	}
	return config, nil
}

// readiness is not ready until every RayCluster and pod has been seen once, and until a leader has been known once, so
// that the first call is answered. A replica that waits for the lease is ready: it can take over.
type readiness struct {
	manager atomic.Pointer[kube.Manager] // nil until the API server has answered
	led     atomic.Bool                  // a leader has been known
}

func (r *readiness) check() error {
	manager := r.manager.Load()
	if manager == nil {
		return errors.New("the API server has not answered yet")
	}
	if manager.Ready() {
		if r.led.Load() || manager.Led() {
			r.led.Store(true)
			return nil
		}
		return errors.New("no replica leads yet")
	}
	if err := manager.WatchError(); err != nil {
		return fmt.Errorf("the caches of RayClusters and pods are not filled: %w", err)
	}
	return errors.New("the caches of RayClusters and pods are not filled yet")
}

func (r *readiness) leads() bool {
	manager := r.manager.Load()
	return manager != nil && manager.Leading()
}

// division returns what this process knows of the shards; false without shards, and before it takes part.
func (r *readiness) division() (telemetry.Division, bool) {
	manager := r.manager.Load()
	if manager == nil || manager.Shards() == nil {
		return telemetry.Division{}, false
	}
	member := manager.Shards()
	started, shards, unowned, readAge := member.View()
	return telemetry.Division{Shard: member.ID(), Shards: shards, Unowned: unowned, ReadAge: readAge}, started
}
