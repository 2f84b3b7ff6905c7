package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/httpapi"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/internal/webui"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
)

// gcPercent trades CPU for memory: a live heap of 15 MiB grows by half and not to its double between collections. GOGC
// in the environment overrides it.
const gcPercent = 50

// shutdownGrace is how long REST calls under way may take when the process ends.
const shutdownGrace = 3 * time.Second

// engineOptions are the flags that `serve` and the sidecar share.
type engineOptions struct {
	loop                controller.Config
	kubeconfig          string
	listen              string
	listenAnywhere      bool
	logFormat, logLevel string
	gpuForCPU           bool
	kube                kube.Options
	gcsAddress          string
	resources           []string
}

func newServeCommand() *cobra.Command {
	o := engineOptions{loop: controller.Config{Form: controller.Fleet}}
	mode, pools := string(nodepool.Managed), ""
	c := &cobra.Command{
		Use:   "serve",
		Short: "Scale the RayClusters of this Kubernetes cluster, and answer REST calls",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			o.loop.DefaultMode = nodepool.Mode(mode)
			config, err := poolsOfFile(pools)
			if err != nil {
				return badInput{err}
			}
			o.kube.Pools = config
			return o.run(c.Context(), c.ErrOrStderr())
		},
	}
	o.addFlags(c)
	f := c.Flags()
	f.StringSliceVar(&o.kube.Namespaces, "namespaces", nil, "serve only RayClusters of these namespaces (default all)")
	f.StringVar(&pools, "pools", "", "a file that describes pools of nodes, above all those that have none now (docs/reference/gpus.md)")
	f.StringArrayVar(&o.kube.NodeAutoscalers, "node-autoscaler", nil,
		"source of a further node autoscaler's Events, as kubectl describe shows it under From (repeatable; those of docs/running.md are known)")
	f.StringVar(&o.kube.StatusNamespace, "cluster-autoscaler-namespace", "kube-system", "where the Cluster Autoscaler writes its ConfigMap cluster-autoscaler-status")
	f.StringVar(&o.kube.KubernetesTokenFile, "gcs-kubernetes-token-file", "",
		"token of a ServiceAccount that may do ray:write on RayClusters and nothing else, sent to heads with enableK8sTokenAuth, which all see it (default: such heads are not called)")
	f.StringVar(&mode, "mode", mode, "mode of RayClusters without the annotation heliostat.dev/mode: managed, shadow or off")
	f.BoolVar(&o.kube.LeaderElection, "leader-elect", false, "let several copies run, of which one decides")
	f.StringVar(&o.kube.LeaseNamespace, "lease-namespace", cmp.Or(os.Getenv("POD_NAMESPACE"), "default"), "namespace of the leader lease")
	f.StringVar(&o.kube.LeaseName, "lease-name", "heliostat", "name of the leader lease")
	f.Float64Var(&o.loop.ReadsPerSecond, "reads-per-second", 200, "bound on readings of Ray heads, all clusters together; pauses stretch beyond it")
	return c
}

// addFlags adds the flags that both forms have. A zero takes the loop's own default.
func (o *engineOptions) addFlags(c *cobra.Command) {
	f, l := c.Flags(), &o.loop
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default: as kubectl finds it, or the pod's service account; a sidecar takes that alone)")
	f.StringVar(&o.listen, "listen", httpapi.DefaultListen, "address of the REST API, metrics and page; empty for none")
	f.BoolVar(&o.listenAnywhere, "insecure-listen-anywhere", false, "allow --listen beyond loopback, where something else guards the port")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.BoolVar(&o.gpuForCPU, "gpu-for-cpu", false, "let CPU-only work launch GPU groups even where a CPU group could serve it")
	f.StringVar(&o.kube.GPUs.PoolLabel, "pool-label", "", poolLabelUsage)
	f.StringArrayVar(&o.resources, "resource", nil, resourceUsage())
	f.DurationVar(&l.FastPoll, "poll-fast", 100*time.Millisecond, "pause between readings of a Ray head while anything moves")
	f.DurationVar(&l.RestPoll, "poll-rest", 200*time.Millisecond, "the same at rest, jittered by a fifth")
	f.DurationVar(&l.GCSTimeout, "gcs-timeout", 3*time.Second, "deadline of each call to a Ray head")
	f.IntVar(&l.MaxInFlight, "max-in-flight", 1000, "most pods of one RayCluster that may be on their way at once, so that no single call of a driver fills the API server")
	f.IntVar(&l.MaxInFlightPerGroup, "max-in-flight-per-group", 0, "the same for one worker group; 0 for no bound of its own")
	f.DurationVar(&l.AllocationTimeout, "allocation-timeout", 5*time.Minute, "how long a group's pods may fail to join Ray before the group is broken off for a while")
	f.DurationVar(&l.UnschedulableGrace, "unschedulable-grace", time.Minute, "how long a node autoscaler that has spoken before may say nothing of a pod without a node before its group counts as out of stock")
	f.DurationVar(&l.BreakerCooldown, "breaker-cooldown", 5*time.Minute, "how long a group that failed takes no launches at first; doubles up to an hour")
	f.DurationVar(&l.DrainDeadline, "drain-deadline", 10*time.Minute, "how long work may go on on a worker above a lowered maximum")
}

// run serves until ctx ends. What is wrong with the flags is told before anything starts.
func (o *engineOptions) run(ctx context.Context, errOut io.Writer) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	log, err := telemetry.NewLogger(errOut, o.logFormat, o.logLevel)
	if err != nil {
		return badInput{err}
	}
	o.loop.Log, o.loop.Policy.GPUForCPU = log, o.gpuForCPU
	if err := o.loop.Validate(); err != nil {
		return badInput{err}
	}
	o.kube.Logger = log
	if o.kube.GPUs.Names.Configured, err = configuredResources(o.resources); err != nil {
		return badInput{err}
	}
	if err := o.kube.Validate(); err != nil {
		return badInput{err}
	}
	config, err := o.restConfig()
	if err != nil {
		return badInput{err}
	}
	log.Info("API server found", "host", config.Host)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	told, err := telemetry.Start(ctx, telemetry.Config{Registerer: registry, Getenv: os.Getenv, Version: version(), Log: log})
	if err != nil {
		return badInput{err}
	}
	defer endTelemetry(told, log)
	config.Wrap(told.APICalls)
	manager, err := kube.NewManager(config, o.kube)
	if err != nil {
		return err
	}
	o.loop.Published = func(d *controller.Decision) { told.Observe(measured(d)) }
	o.loop.Forgotten = func(key nodepool.ClusterKey) { told.Forget(key.Namespace, key.Name) }
	loop, err := controller.New(manager, o.dialer(manager), o.loop)
	if err != nil {
		return badInput{err}
	}
	defer loop.Close()
	return o.serve(ctx, log, manager, loop, told.Tracer, registry)
}

// serve runs the REST server and the loop; the end of either ends both.
func (o *engineOptions) serve(ctx context.Context, log *slog.Logger, manager *kube.Manager,
	loop *controller.Controller, tracer *telemetry.Tracer, registry *prometheus.Registry) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rest, err := o.startREST(cancel, log, manager, loop, registry)
	if err != nil {
		return badInput{err}
	}
	log.Info("serving", "form", string(o.loop.Form), "listen", o.listen)
	err = manager.Start(ctx, traced(loop, tracer))
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if rest != nil {
		grace, done := context.WithTimeout(context.Background(), shutdownGrace)
		defer done()
		err = errors.Join(err, rest.Shutdown(grace))
	}
	return err
}

// endTelemetry exports what is left. A collector that is gone is no reason to fail.
func endTelemetry(told *telemetry.Telemetry, log *slog.Logger) {
	grace, done := context.WithTimeout(context.Background(), shutdownGrace)
	defer done()
	if err := told.Shutdown(grace); err != nil {
		log.Warn("telemetry", "err", err)
	}
}

// startREST listens before it returns, so that a port in use is told at once; nil when --listen is empty.
func (o *engineOptions) startREST(cancel context.CancelCauseFunc, log *slog.Logger, manager *kube.Manager,
	loop *controller.Controller, registry *prometheus.Registry) (*http.Server, error) {
	if o.listen == "" {
		return nil, nil
	}
	server, err := httpapi.NewServer(httpapi.Config{
		Listen: o.listen, InsecureListenAnywhere: o.listenAnywhere,
		Fleet: fleet{loop}, Requests: kube.Requests{Manager: manager},
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), Page: webui.Handler(),
		Ready: readiness(manager), Log: log,
	})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", o.listen, err)
	}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			cancel(fmt.Errorf("serving REST on %s: %w", o.listen, err))
		}
	}()
	return server, nil
}

// readiness says not ready until every RayCluster and pod has been seen once. A copy that waits for the lease is ready:
// it can take over.
func readiness(manager *kube.Manager) func() error {
	return func() error {
		if manager.Ready() {
			return nil
		}
		if err := manager.WatchError(); err != nil {
			return fmt.Errorf("the caches of RayClusters and pods are not filled: %w", err)
		}
		return errors.New("the caches of RayClusters and pods are not filled yet")
	}
}

// restConfig finds the API server as kubectl does. The environment of a sidecar is that of somebody's Ray: what it names may be another
// API server, so there only the flag and the pod's own account count.
func (o *engineOptions) restConfig() (*rest.Config, error) {
	if o.kubeconfig != "" || o.loop.Form == controller.Fleet {
		return kubectlConfig(o.kubeconfig)
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w; outside a pod, give --kubeconfig", err)
	}
	return config, nil
}

// dialer connects to a head at its pod's address, with the credentials that the RayCluster names; a sidecar has its own
// beside it.
func (o *engineOptions) dialer(manager *kube.Manager) controller.Dialer {
	return func(ctx context.Context, cluster nodepool.Cluster) (controller.Ray, error) {
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
			if config.TLS, err = gcs.LoadTLS(credentials.CA, credentials.Cert, credentials.Key, credentials.ServerName); err != nil {
				return nil, err
			}
		}
		return gcs.Dial(config)
	}
}
