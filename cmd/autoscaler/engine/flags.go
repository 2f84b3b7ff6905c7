package engine

import (
	"log/slog"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/addon/costs"
	"heliostat.dev/heliostat/internal/addon/giveback"
	"heliostat.dev/heliostat/internal/addon/reclaim"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
)

// day is the unit of the longest durations.
const day = 24 * time.Hour

// newOptions returns the defaults of the shared flags.
func newOptions(form controller.Form, ports portFlags) *options {
	o := &options{loop: controller.DefaultConfig(), features: features{consolidateAfter: 10 * time.Minute,
		reclaim: reclaim.Settings{PerHour: 8, MinRuntime: 10 * time.Minute}}, ports: ports,
		logFormat: "json", logLevel: "info"}
	o.loop.Form = form
	return o
}

// addFlags adds the flags that `serve` and the sidecar share.
func (o *options) addFlags(c *cobra.Command) {
	f, l := c.Flags(), &o.loop
	f.BoolVar(&o.features.protectBusy, "protect-busy", false, "annotate heads and busy workers of managed RayClusters "+
		"so that Karpenter and the Cluster Autoscaler do not evict them; needs the verb patch on pods")
	cli.Number(f, &l.Policy.MaxInFlight, "max-in-flight", 1, math.MaxInt32, "most pods of one RayCluster that may be "+
		"on their way at once, so that one call of a driver cannot fill the API server")
	cli.Duration(f, &l.AllocationTimeout, "allocation-timeout", time.Second, day, "how long a group's pods may fail "+
		"to join Ray before launches of the group are paused; after a fifth of it without a node, and without a word "+
		"of a node autoscaler, the group counts as out of stock")
	cli.Duration(f, &l.DrainDeadline, "drain-deadline", time.Second, 365*day, "how long work may continue on a worker "+
		"above a lowered maximum, and the deadline in drains because of bad GPUs and for --reclaim")
	f.BoolVar(&l.DrainBadGPUs, "drain-bad-gpus", false, "drain and replace workers of managed RayClusters when their "+
		"GPU is bad; without it, status and Events only name them")
	cli.Duration(f, &o.features.consolidateAfter, "consolidate-after", time.Second, day, "how long a worker must be "+
		"used a little, and nothing may be launched, before it is drained because others have room for its work; only "+
		"with the annotation "+nodepool.ConsolidateAnnotation)
	o.nodes.AddTo(f)
	cli.Duration(f, &l.RestPoll, "poll-rest", 10*time.Millisecond, time.Hour, "shortest interval between readings of "+
		"a Ray head at rest; varies by a tenth, and grows with the number of RayClusters")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file (default: as kubectl finds it, or the pod's "+
		"ServiceAccount; a sidecar uses only the ServiceAccount)")
	o.ports.AddTo(f)
	cli.Word(f, &o.logFormat, "log-format", "", "json", "text")
	cli.Word(f, &o.logLevel, "log-level", "", "debug", "info", "warn", "error")
}

// options are the flags of `serve` and of the sidecar, and what the process makes of them when it starts.
type options struct {
	loop                controller.Config
	features            features
	kubeconfig          string
	ports               portFlags
	logFormat, logLevel string
	kube                kube.Options
	gcsAddress          string
	nodes               cli.NodeReaderFlags
	log                 *slog.Logger
	// rest is how to reach the API server; tel and registry take what is measured.
	rest     *rest.Config
	tel      *telemetry.Telemetry
	registry *prometheus.Registry
	// apiQPS limits requests to the API server; 0 is the default of kube.Manager.
	apiQPS float32
	// ready tracks startup for the readiness probe.
	ready readiness
	// park ends the engine of a sidecar, which then starts again and waits until its RayCluster is given back.
	park func()
	// past keeps decisions for callers of the REST API.
	past *History
	// giveBack takes what callers want back.
	giveBack *giveback.Desk
	// costs adds up what workers cost.
	costs *costs.Costs
}
