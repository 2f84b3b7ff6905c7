package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/cmd/autoscaler/publish"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/connect"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/controller/outlook"
	"heliostat.dev/heliostat/internal/httpapi"
	"heliostat.dev/heliostat/internal/httpapi/apiv1"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/ledger/keeper"
	"heliostat.dev/heliostat/internal/listen"
	"heliostat.dev/heliostat/internal/memorylimit"
	"heliostat.dev/heliostat/internal/series"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/internal/webui"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/costs"
	"heliostat.dev/heliostat/pkg/nodepool/price"
)

// gcPercent trades CPU for memory: between collections, a live heap of 15 MiB grows by half instead of doubling. GOGC
// in the environment overrides it.
const gcPercent = 50

// shutdownGrace is how long work may continue after a signal: a moment longer than REST calls take to finish.
const shutdownGrace = httpapi.FinishWithin + time.Second

// engineOptions are the flags that `serve` and the sidecar share.
type engineOptions struct {
	loop                controller.Config
	kubeconfig          string
	ports               listen.Flags
	logFormat, logLevel string
	gpuForCPU           bool
	drainDeparting      bool
	waitingCost         float64
	kube                kube.Options
	gcsAddress          string
	nodes               cli.NodeReaderFlags
	// apiQPS and apiBurst limit requests to the API server; 0 is the default of kube.Manager.
	apiQPS   float32
	apiBurst int
	// charts are the series that the page draws.
	charts series.Fleet
	// ready tracks startup for the readiness probe.
	ready readiness
	// bounds knows how much of each bound of what the process keeps is in use.
	bounds telemetry.Bounds
	// recorder records decisions for callers of the REST API.
	recorder *publish.Recorder
	// prices are those of nodes, costs adds up what workers cost, and keepCosts keeps that over restarts.
	prices    price.Book
	keepCosts bool
	costs     *publish.Costs
	// forecast is off, suggest or act; empty is off. outlook is nil if it is off.
	forecast string
	outlook  *outlook.Outlook
	// keepHistories: histories of demand are stored for the next process.
	keepHistories bool
}

func newServeCommand() *cobra.Command {
	o := engineOptions{loop: controller.Config{Form: mode.Fleet}, forecast: capacity.ForecastSuggest}
	mode, pools, prices, requestMemory, shards := string(nodepool.Shadow), "", "", "64Mi", ""
	c := &cobra.Command{
		Use: "serve",
		Short: "Plans for the RayClusters of this Kubernetes cluster, scales those that you enable, and serves the " +
			"REST API",
		Long: "Plans for every RayCluster. It scales those with the annotation heliostat.dev/mode: managed on\n" +
			"the RayCluster or on its namespace (see `autoscaler manage`), and with --mode managed also those\n" +
			"without an annotation.",
		Example: `  autoscaler serve --insecure-no-auth
  autoscaler serve --mode managed --insecure-no-auth
  HELIOSTAT_LOG_FORMAT=text autoscaler serve --namespaces ml,research`,
		Args: cli.NoArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("mode") {
				o.loop.DefaultMode = nodepool.Mode(mode)
			}
			config, err := poolsOfFile(pools)
			if err != nil {
				return cli.BadInput(err)
			}
			if o.prices, err = pricesOfFile(prices); err != nil {
				return cli.BadInput(err)
			}
			if shards != "" {
				o.kube.Sharded = true
				o.kube.MostShards, _ = strconv.Atoi(shards) // "auto" is 0, which means all
			}
			// The default namespace is for a Lease, which a user's own rights need not fill with ConfigMaps.
			o.keepHistories = !o.loop.ReadOnly &&
				(c.Flags().Changed("lease-namespace") || os.Getenv("POD_NAMESPACE") != "")
			o.kube.Pools, o.kube.ReadOnly, o.kube.RequestMemory = config, o.loop.ReadOnly, bytesOf(requestMemory)
			return o.run(c)
		},
	}
	o.addFlags(c)
	f := c.Flags()
	f.StringSliceVar(&o.kube.Namespaces, "namespaces", nil, "only RayClusters of these namespaces (default all)")
	f.StringVar(&pools, "pools", "",
		"a file that describes pools of nodes, such as pools that have no nodes now (docs/reference/gpus.md)")
	f.StringVar(&prices, "prices", "", "a file with prices of nodes, which come before the built-in list prices "+
		"(docs/reference/costs.md)")
	f.BoolVar(&o.keepCosts, "keep-costs", false, "keep what RayClusters have cost over restarts, in the ConfigMaps "+
		"LEASE-NAME-costs-0 to -7 of --lease-namespace; needs the verbs get, create and patch on them")
	f.DurationVar(&o.loop.JobsEvery, "jobs-every", 0, "read for which Ray jobs the workers work, for autoscaler costs "+
		"--by job; each reading takes two tables of the head, so a minute or more (default: never)")
	f.BoolVar(&o.kube.Provisioning, "provisioning-requests", false, "create ProvisioningRequests of the Cluster "+
		"Autoscaler for gangs of groups with the annotation "+nodepool.ProvisioningAnnotation+"; needs rights on "+
		"provisioningrequests, podtemplates and pods")
	f.BoolVar(&o.kube.WarmNodes, "warm-nodes", false, "keep nodes without workers ready where a capacity policy says "+
		"so (keepWarmNodes), with CapacityBuffers of Karpenter or GKE; needs rights on capacitybuffers and "+
		"podtemplates")
	f.StringArrayVar(&o.kube.NodeAutoscalers, "node-autoscaler", nil, "source of the Events of another node "+
		"autoscaler, as kubectl describe shows it under From (repeatable; docs/running.md lists those that "+
		"Heliostat knows)")
	f.StringVar(&o.kube.StatusNamespace, "cluster-autoscaler-namespace", "kube-system",
		"namespace of the Cluster Autoscaler's ConfigMap cluster-autoscaler-status")
	f.StringVar(&o.kube.KubernetesTokenFile, "gcs-kubernetes-token-file", "",
		"ServiceAccount token file for heads with enableK8sTokenAuth, shared with every such head; grant it only "+
			"ray:write on RayClusters (default: such heads are not called)")
	f.StringVar(&mode, "mode", mode, "mode of RayClusters without the annotation heliostat.dev/mode, in namespaces "+
		"without it: managed, shadow or off")
	f.BoolVar(&o.loop.ReadOnly, "read-only", false, "write to no RayCluster and to no ResourceRequest, whatever an "+
		"annotation or a request says; RayClusters in mode managed become shadow")
	f.Float32Var(&o.apiQPS, "kube-api-qps", kube.DefaultQPS, "average requests to the API server per second; writes "+
		"for callers of the REST API have a separate limit of four times that, and reviews of callers have one of "+
		"their own")
	f.IntVar(&o.apiBurst, "kube-api-burst", kube.DefaultBurst, "burst of requests to the API server")
	f.BoolVar(&o.kube.LeaderElection, "leader-elect", false, "run several replicas, of which one is the leader and "+
		"decides")
	f.StringVar(
		&shards,
		"shards",
		"",
		"auto or a number: run several replicas that divide the RayClusters among them, "+
			"all of them or at most that many; excludes --leader-elect",
	)
	c.MarkFlagsMutuallyExclusive("shards", "leader-elect")
	cli.ValidateString(f, "shards", &shards, "auto, or a whole number from 1 to 1000", isShards)
	f.StringVar(&o.kube.LeaseNamespace, "lease-namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), "default"),
		"namespace of the leader lease, of the leases of shards, and of histories of demand")
	f.StringVar(&o.kube.LeaseName, "lease-name", "heliostat", "name of the leader lease; those of shards begin with it")
	f.StringVar(&o.ports.Advertised, "advertise-address", os.Getenv("POD_IP"),
		"IP address at which other replicas call this one's REST API, on the port of --listen, while it is the "+
			"leader or a shard; empty for none")
	f.Float64Var(&o.loop.ReadsPerSecond, "reads-per-second", 4000,
		"limit on reads of Ray heads, all RayClusters together; when it applies, the intervals grow")
	f.Float64Var(&o.loop.CyclesPerSecond, "cycles-per-second", 400,
		"limit on decisions, all RayClusters together; a read that shows nothing new needs none")
	f.StringVar(&o.forecast, "forecast", o.forecast, "off; suggest: remember the demand of four weeks, and say "+
		"what would be worth keeping ready; act: also keep it, within the budget of the RayCluster's capacity policy")
	f.StringVar(&requestMemory, "request-memory", requestMemory, "memory for the ResourceRequests of all owners, "+
		"shared fairly by namespaces and owners; requests beyond it do not count, and their status says so")
	cli.ValidateString(f, "request-memory", &requestMemory, "an amount of memory from 1Mi to 1Ti, such as 64Mi",
		func(text string) bool { return bytesOf(text) >= 1<<20 && bytesOf(text) <= 1<<40 })
	cli.ValidateString(f, "forecast", &o.forecast, "off, suggest or act",
		func(word string) bool { return apiv1.ForecastMode(word).Valid() })
	cli.ValidateString(f, "mode", &mode, "managed, shadow or off",
		func(word string) bool { return nodepool.Mode(word).Valid() })
	o.checkFleet(f)
	return cli.AddSettings(c)
}

// run serves until ctx ends. It checks the flags before anything starts.
func (o *engineOptions) run(c *cobra.Command) error {
	ctx := c.Context()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	local, err := telemetry.NewLogger(c.ErrOrStderr(), o.logFormat, o.logLevel)
	if err != nil {
		return cli.BadInput(err)
	}
	telemetry.AdoptGRPC(local)
	telemetry.AdoptLibraries(local)
	cli.LogUnknownVariables(cli.Variables(c.Flags()), os.Environ(), local)
	o.kube.Logger = local
	o.loop.Policy.GPUForCPU, o.loop.Policy.WaitingCost = o.gpuForCPU, o.waitingCost
	o.loop.KeepDeparting = !o.drainDeparting
	if err := o.loop.Validate(); err != nil {
		return cli.BadInput(err)
	}
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
	config.QPS, config.Burst = o.apiQPS, o.apiBurst
	config.UserAgent = userAgent()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector())
	tel, err := telemetry.Start(ctx, telemetry.Config{
		Registerer:    registry,
		Getenv:        os.Getenv,
		Version:       version(),
		Log:           local,
		Leads:         o.ready.leads,
		RequestMemory: o.ready.requestMemory,
		Bounds:        &o.bounds,
		Division:      o.ready.division,
	})
	if err != nil {
		return cli.BadInput(err)
	}
	defer endTelemetry(tel, local)
	// From here on, logs are exported too.
	telemetry.AdoptLibraries(tel.Log)
	o.loop.Log, o.kube.Logger = tel.Log, tel.Log
	defer memorylimit.Keep(tel.Log)()
	tel.Log.Info("API server found", "host", config.Host)
	config.Wrap(tel.APICalls)
	return o.serve(ctx, tel.Log, config, tel, registry)
}

// serve runs the servers and the loop; if one of them stops, all stop.
func (o *engineOptions) serve(
	ctx context.Context,
	log *slog.Logger,
	config *rest.Config,
	tel *telemetry.Telemetry,
	registry *prometheus.Registry,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	servers := listen.NewServers(cancel)
	o.bounds.Add(servers.BoundsUsed)
	err := o.work(ctx, servers, log, config, tel, registry)
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return errors.Join(err, servers.Shutdown(shutdownGrace))
}

// work waits for the API server, and then runs the loop until ctx ends. It answers probes from the beginning, because
// kubelet must not kill a process that waits.
func (o *engineOptions) work(
	ctx context.Context,
	servers *listen.Servers,
	log *slog.Logger,
	config *rest.Config,
	tel *telemetry.Telemetry,
	registry *prometheus.Registry,
) error {
	if err := servers.StartOthers(&o.ports, metricsOf(registry), o.ready.check, log); err != nil {
		return cli.BadInput(err)
	}
	o.kube.Traces = kube.Traces{Call: telemetry.Traceparent, ScaleUp: telemetry.ScaleUpAnnotation}
	manager, err := kube.Connect(ctx, config, o.kube, log)
	if err != nil && ctx.Err() != nil {
		return nil // serve returns the cause
	}
	if err != nil {
		return err
	}
	o.ready.manager.Store(manager)
	o.bounds.Add(manager.BoundsUsed)
	loop, err := o.newLoop(log, manager, tel)
	if err != nil {
		return cli.BadInput(err)
	}
	defer loop.Close()
	kept, err := o.keep(ctx, log, manager, config)
	if err != nil {
		return err
	}
	defer kept()
	manager.WatchOthers(loop.Watch)
	if err := o.listen(ctx, servers, log, config, manager, loop, tel.Tracer, registry, o.ready.check); err != nil {
		return cli.BadInput(err)
	}
	if o.outlook != nil && o.keepHistories {
		ended, err := o.keepHistoriesOf(ctx, config, log)
		if err != nil {
			return err
		}
		defer ended()
	}
	log.Info("serving", "form", string(o.loop.Form), "listen", o.ports.REST)
	return manager.Start(ctx, traced(loop, tel.Tracer, keptBy(manager)))
}

// newLoop returns the loop, which passes its decisions on.
func (o *engineOptions) newLoop(
	log *slog.Logger,
	manager *kube.Manager,
	tel *telemetry.Telemetry,
) (*controller.Controller, error) {
	o.passOn(log, tel)
	o.loop.Owned = manager.OwnedRequests()
	o.loop.Serves = servesWith(manager.Credentials, o.loop.GCSTimeout)
	return controller.New(manager, o.dialer(manager), o.loop)
}

// passOn passes decisions to telemetry, charts, the recorder and the histories of demand.
func (o *engineOptions) passOn(log *slog.Logger, tel *telemetry.Telemetry) {
	o.recorder = publish.NewRecorder(log)
	o.bounds.Add(o.recorder.BoundsUsed)
	book := o.prices.With(o.kube.Pools)
	book.Names = o.kube.GPUs.Names
	o.costs = publish.NewCosts(time.Now(), &book)
	o.bounds.Add(func() map[string]float64 { return map[string]float64{"costs": o.costs.Ledger.Used()} })
	o.loop.Prices = &book
	if o.forecast == capacity.ForecastSuggest || o.forecast == capacity.ForecastAct {
		o.outlook = outlook.New("")
		o.loop.Forecast, o.loop.ForecastMode = publish.Expected(o.outlook), o.forecast
		if !o.keepHistories {
			o.outlook.NotStored("it runs with --read-only, or without a namespace of its own (--lease-namespace)")
		}
	}
	o.loop.WarmSpent = func(key nodepool.ClusterKey, since time.Time) float64 {
		return o.costs.Ledger.MoneySince(key, ledger.Warm, since) + o.costs.Ledger.NodesSince(key, since)
	}
	o.loop.Published = func(d *decision.Decision) {
		measured := publish.Metrics(d)
		measured.Costs = o.costs.Metrics(d.Cluster)
		tel.Observe(measured)
		o.costs.Observe(d)
		o.recorder.Publish(d)
		o.outlook.Observe(d)
		if !d.ObserveFailed {
			o.charts.Add(d.Cluster, series.PointOf(d.At, d.Snapshot, d.Plan))
		}
	}
	o.loop.Forgotten = func(key nodepool.ClusterKey) {
		tel.Forget(key.Namespace, key.Name)
		tel.Gone(key.Namespace, key.Name, time.Now())
		o.charts.Forget(key)
		o.costs.Forget(key, time.Now())
		o.recorder.Forget(key)
		o.outlook.Forget(key)
	}
	o.loop.Released = func(key nodepool.ClusterKey) {
		tel.Forget(key.Namespace, key.Name)
		o.charts.Forget(key)
		o.costs.Release(key)
		o.recorder.Release(key)
		o.outlook.Forget(key)
	}
}

// keep keeps the costs over restarts until ctx ends, or until the function that it returns is called, which waits until
// they are saved. Without the right to keep them, or unasked, they begin anew.
func (o *engineOptions) keep(
	ctx context.Context,
	log *slog.Logger,
	manager *kube.Manager,
	config *rest.Config,
) (end func(), err error) {
	settings := keeper.Config{Ledger: o.costs.Ledger, Beside: o.costs.History, Mine: manager.MayWrite,
		Shared: o.kube.Sharded, Now: time.Now, Log: log}
	if o.keepCosts && !o.loop.ReadOnly {
		core, err := corev1client.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("connecting for costs: %w", err)
		}
		settings.Store = costs.NewStore(core.ConfigMaps(o.kube.LeaseNamespace), o.kube.LeaseName+"-costs")
	}
	k := keeper.New(settings)
	o.costs.HandOver = k.HandOver
	ctx, cancel := context.WithCancel(ctx)
	var runs sync.WaitGroup
	runs.Go(func() {
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		k.Run(ctx, ticks.C)
	})
	return func() {
		cancel()
		runs.Wait()
	}, nil
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
func (o *engineOptions) listen(
	ctx context.Context,
	servers *listen.Servers,
	log *slog.Logger,
	config *rest.Config,
	manager *kube.Manager,
	loop *controller.Controller,
	tracer *telemetry.Tracer,
	registry *prometheus.Registry,
	ready func() error,
) error {
	if o.ports.REST == "" {
		return nil
	}
	api := httpapi.Config{
		Fleet:      publish.Fleet{Loop: loop},
		Series:     &o.charts,
		Requests:   tracedRequests{kube.Requests{Manager: manager}, tracer},
		Owned:      tracedOwned{manager.OwnedRequests(), tracer},
		Freezer:    manager,
		Modes:      manager,
		Policies:   manager,
		Page:       webui.Handler(),
		Bounds:     o.bounds.Add,
		Ready:      ready,
		Log:        log,
		Leadership: publish.NewLeadership(manager, loop),
	}
	api.History, api.Hub, api.Shadow = o.recorder, o.recorder.Hub, o.recorder
	api.Costs, api.Currency = o.costs.Ledger, o.prices.Unit()
	api.Savings = publish.Savings{Decisions: loop.Decisions, History: o.costs.History}
	if o.outlook != nil {
		api.Forecasts = publish.Forecasts{Decision: loop.Decision, Outlook: o.outlook, Now: time.Now, Mode: o.forecast}
	}
	if member := manager.Shards(); member != nil {
		api.Division = publish.Division{Shards: member}
		api.Fleet = publish.Fleet{Loop: loop, Shard: member.ID()}
	}
	if o.kube.Single == nil {
		api.Nodepools = publish.NewNodepools(config, o.kube)
	}
	if o.ports.Metrics == "" {
		api.Metrics = metricsOf(registry)
	}
	if err := o.ports.Secure(ctx, &api, config); err != nil {
		return err
	}
	server, err := httpapi.NewServer(api)
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
func (o *engineOptions) restConfig() (*rest.Config, error) {
	if o.kubeconfig != "" || o.loop.Form == mode.Fleet {
		return connect.KubeFlags{Kubeconfig: o.kubeconfig}.Config()
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w; outside a pod, give --kubeconfig", err)
	}
	return config, nil
}
