package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/cmd/autoscaler/publish"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/cli/connect"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/head"
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/internal/httpapi"
	"heliostat.dev/heliostat/internal/series"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/internal/webui"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
)

// gcPercent trades CPU for memory: a live heap of 15 MiB grows by half and not to its double between collections. GOGC
// in the environment overrides it.
const gcPercent = 50

// shutdownGrace is how long what is under way may take when the process ends: REST calls are answered a moment before.
const shutdownGrace = httpapi.FinishWithin + time.Second

// engineOptions are the flags that `serve` and the sidecar share.
type engineOptions struct {
	loop                controller.Config
	kubeconfig          string
	rest                listenOptions
	logFormat, logLevel string
	gpuForCPU           bool
	kube                kube.Options
	gcsAddress          string
	told                cli.NodeReaderFlags
	// apiQPS and apiBurst bound requests to the API server; 0 is Manager's own bound.
	apiQPS   float32
	apiBurst int
	// lines are what the page draws.
	lines series.Fleet
	// ready is how far the start has come.
	ready readiness
	// after is what decisions leave behind for callers.
	after *publish.Recorder
}

func newServeCommand() *cobra.Command {
	o := engineOptions{loop: controller.Config{Form: mode.Fleet}}
	mode, pools, requestMemory := string(nodepool.Shadow), "", "64Mi"
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
			o.kube.Pools, o.kube.ReadOnly, o.kube.RequestMemory = config, o.loop.ReadOnly, bytesOf(requestMemory)
			return o.run(c)
		},
	}
	o.addFlags(c)
	f := c.Flags()
	f.StringSliceVar(&o.kube.Namespaces, "namespaces", nil, "serve only RayClusters of these namespaces (default all)")
	f.StringVar(&pools, "pools", "",
		"a file that describes pools of nodes, such as pools that have no nodes now (docs/reference/gpus.md)")
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
	f.StringVar(&o.kube.LeaseNamespace, "lease-namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), "default"),
		"namespace of the leader lease")
	f.StringVar(&o.kube.LeaseName, "lease-name", "heliostat", "name of the leader lease")
	f.StringVar(&o.rest.advertised, "advertise-address", os.Getenv("POD_IP"),
		"IP address at which other replicas call this one's REST API, on the port of --listen, while it is the "+
			"leader; empty for none")
	f.Float64Var(&o.loop.ReadsPerSecond, "reads-per-second", 200,
		"limit on reads of Ray heads, all RayClusters together; when it applies, the intervals grow")
	f.StringVar(&requestMemory, "request-memory", requestMemory, "memory for the ResourceRequests of all owners, "+
		"shared fairly by namespaces and owners; those beyond it do not count, and their status says so")
	cli.ValidateString(
		f,
		"request-memory",
		&requestMemory,
		"an amount of memory from 1Mi to 1Ti",
		func(text string) bool {
			return bytesOf(text) >= 1<<20 && bytesOf(text) <= 1<<40
		},
	)
	cli.ValidateString(f, "mode", &mode, "managed, shadow or off",
		func(word string) bool { return nodepool.Mode(word).Valid() })
	o.checkFleet(f)
	return cli.AddSettings(c)
}

// run serves until ctx ends. What is wrong with the flags is told before anything starts.
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
	o.kube.Logger, o.loop.Policy.GPUForCPU = local, o.gpuForCPU
	if err := o.loop.Validate(); err != nil {
		return cli.BadInput(err)
	}
	if err := o.rest.validate(); err != nil {
		return cli.BadInput(err)
	}
	if o.kube.LeaderElection {
		o.kube.Address = o.rest.address()
	}
	if o.kube.GPUs, err = o.told.Reader(); err != nil {
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
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector())
	told, err := telemetry.Start(ctx, telemetry.Config{
		Registerer:    registry,
		Getenv:        os.Getenv,
		Version:       version(),
		Log:           local,
		Leads:         o.ready.leads,
		RequestMemory: o.ready.requestMemory,
	})
	if err != nil {
		return cli.BadInput(err)
	}
	defer endTelemetry(told, local)
	// From here on what is logged is exported too.
	telemetry.AdoptLibraries(told.Log)
	o.loop.Log, o.kube.Logger = told.Log, told.Log
	defer keepMemory(told.Log)()
	told.Log.Info("API server found", "host", config.Host)
	config.Wrap(told.APICalls)
	return o.serve(ctx, told.Log, config, told, registry)
}

// serve runs the servers and the loop; the end of any ends all.
func (o *engineOptions) serve(
	ctx context.Context,
	log *slog.Logger,
	config *rest.Config,
	told *telemetry.Telemetry,
	registry *prometheus.Registry,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	listening := &servers{fail: cancel}
	err := o.work(ctx, listening, log, config, told, registry)
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return errors.Join(err, listening.shutdown(shutdownGrace))
}

// work waits for the API server, and then runs the loop until ctx ends. Probes are answered from the beginning: a
// kubelet must not end a process that waits.
func (o *engineOptions) work(
	ctx context.Context,
	listening *servers,
	log *slog.Logger,
	config *rest.Config,
	told *telemetry.Telemetry,
	registry *prometheus.Registry,
) error {
	if err := o.rest.listenAside(listening, metricsOf(registry), o.ready.check, log); err != nil {
		return cli.BadInput(err)
	}
	if err := kube.Await(ctx, config, log); err != nil {
		if ctx.Err() != nil {
			return nil // serve has the cause
		}
		return err
	}
	o.kube.Traces = kube.Traces{Call: telemetry.Traceparent, ScaleUp: telemetry.ScaleUpAnnotation}
	manager, err := kube.NewManager(config, o.kube)
	if err != nil {
		return err
	}
	o.ready.manager.Store(manager)
	loop, err := o.newLoop(log, manager, told)
	if err != nil {
		return cli.BadInput(err)
	}
	defer loop.Close()
	if err := o.listen(ctx, listening, log, config, manager, loop, told.Tracer, registry, o.ready.check); err != nil {
		return cli.BadInput(err)
	}
	log.Info("serving", "form", string(o.loop.Form), "listen", o.rest.listen)
	return manager.Start(ctx, traced(loop, told.Tracer, keptBy(manager)))
}

// newLoop is the loop, whose decisions are told to all who follow them.
func (o *engineOptions) newLoop(
	log *slog.Logger,
	manager *kube.Manager,
	told *telemetry.Telemetry,
) (*controller.Controller, error) {
	o.after = publish.NewRecorder(log)
	o.loop.Published = func(d *decision.Decision) {
		told.Observe(publish.Metrics(d))
		o.after.Publish(d)
		if !d.ObserveFailed {
			o.lines.Add(d.Cluster, series.PointOf(d.At, d.Snapshot, d.Plan))
		}
	}
	o.loop.Owned = manager.OwnedRequests()
	o.loop.Forgotten = func(key nodepool.ClusterKey) {
		told.Forget(key.Namespace, key.Name)
		told.Gone(key.Namespace, key.Name, time.Now())
		o.lines.Forget(key)
		o.after.Forget(key)
	}
	return controller.New(manager, o.dialer(manager), o.loop)
}

// endTelemetry exports what is left. A collector that is gone is no reason to fail.
func endTelemetry(told *telemetry.Telemetry, log *slog.Logger) {
	grace, done := context.WithTimeout(context.Background(), shutdownGrace)
	defer done()
	if err := told.Shutdown(grace); err != nil {
		log.Warn("telemetry", "err", err)
	}
}

// listen starts the REST API where the flags ask for it.
func (o *engineOptions) listen(
	ctx context.Context,
	listening *servers,
	log *slog.Logger,
	config *rest.Config,
	manager *kube.Manager,
	loop *controller.Controller,
	tracer *telemetry.Tracer,
	registry *prometheus.Registry,
	ready func() error,
) error {
	if o.rest.listen == "" {
		return nil
	}
	api := httpapi.Config{
		Fleet: publish.Fleet{
			Loop: loop,
		},
		Series:   &o.lines,
		Requests: tracedRequests{kube.Requests{Manager: manager}, tracer},
		Owned: tracedOwned{
			manager.OwnedRequests(),
			tracer,
		},
		Freezer:    manager,
		Modes:      manager,
		Page:       webui.Handler(),
		Ready:      ready,
		Log:        log,
		Leadership: publish.NewLeadership(manager, loop),
	}
	api.History, api.Hub, api.Shadow = o.after, o.after.Hub, o.after
	if o.kube.Single == nil {
		api.Nodepools = publish.NewNodepools(config, o.kube)
	}
	if o.rest.metrics == "" {
		api.Metrics = metricsOf(registry)
	}
	if err := o.rest.secure(ctx, &api, config); err != nil {
		return err
	}
	server, err := httpapi.NewServer(api)
	if err != nil {
		return err
	}
	if err := listening.start("REST", server, maxConnections); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	return nil
}

// readiness says not ready until every RayCluster and pod has been seen once. A copy that waits for the lease is ready:
// it can take over.
type readiness struct{ manager atomic.Pointer[kube.Manager] } // nil until the API server has answered

func (r *readiness) check() error {
	manager := r.manager.Load()
	if manager == nil {
		return errors.New("the API server has not answered yet")
	}
	if manager.Ready() {
		return nil
	}
	if err := manager.WatchError(); err != nil {
		return fmt.Errorf("the caches of RayClusters and pods are not filled: %w", err)
	}
	return errors.New("the caches of RayClusters and pods are not filled yet")
}

// leads reports whether this process decides now.
func (r *readiness) leads() bool {
	manager := r.manager.Load()
	return manager != nil && manager.Leading()
}

// requestMemory is what requests of owners take in memory; nothing before the API server has answered, and in a
// sidecar.
func (r *readiness) requestMemory() telemetry.RequestMemory {
	manager := r.manager.Load()
	if manager == nil {
		return telemetry.RequestMemory{}
	}
	memory := manager.RequestMemory()
	return telemetry.RequestMemory{Budget: memory.Budget, Held: memory.Held, Over: memory.Refused}
}

// restConfig finds the API server as kubectl does. The environment of a sidecar is that of somebody's Ray: what it
// names may be another API server, so there only the flag and the pod's own account count.
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

// dialer connects to a head at its pod's address, with the credentials that the RayCluster names; a sidecar has its own
// beside it.
func (o *engineOptions) dialer(manager *kube.Manager) head.Dialer {
	return func(ctx context.Context, cluster nodepool.Cluster) (head.Ray, error) {
		config := gcs.Config{
			Address: cmp.Or(o.gcsAddress, net.JoinHostPort(cluster.Head.IP, fmt.Sprint(cluster.Head.GCSPort))),
			Timeout: o.loop.GCSTimeout, DrainTimeout: o.loop.GCSTimeout,
		}
		if o.kube.Single != nil {
			if err := rayEnvironment(os.Getenv).authenticate(&config, &cluster); err != nil {
				return nil, err
			}
		}
		credentials, err := manager.Credentials(ctx, cluster)
		if err != nil {
			return nil, err
		}
		if credentials.Token != "" {
			config.Token = func(context.Context) (string, error) { return credentials.Token, nil }
		}
		if len(credentials.CA) > 0 {
			if config.TLS, err = gcs.LoadTLS(credentials.CA, credentials.Cert, credentials.Key,
				credentials.ServerName); err != nil {
				return nil, err
			}
		}
		return gcs.Dial(config)
	}
}
