package engine

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// day is the unit of the longest durations.
const day = 24 * time.Hour

// addFlags adds the flags that `serve` and the sidecar share.
func (o *options) addFlags(c *cobra.Command) {
	f, l := c.Flags(), &o.loop
	f.StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig file (default: as kubectl finds it, or the pod's ServiceAccount; a sidecar uses only the "+
			"ServiceAccount)")
	o.ports.AddTo(f)
	f.StringVar(&o.logFormat, "log-format", "json", "json or text")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
	f.Float64Var(&o.waitingCost, "waiting-cost", 0, "what it costs to wait one hour for one pod, in the currency of "+
		"the prices of groups (0: the price decides, and of equal groups the one that is ready sooner)")
	cli.Validate(f, "waiting-cost", "a number from 0 to 1000000000", cli.Within(&o.waitingCost, 0, 1e9))
	o.nodes.AddTo(f)
	f.DurationVar(&l.RestPoll, "poll-rest", 200*time.Millisecond, "shortest interval between readings of a Ray head "+
		"at rest; varies by a tenth, and grows with the number of RayClusters")
	f.IntVar(&l.MaxInFlight, "max-in-flight", 1000, "most pods of one RayCluster that may be on their way at once, "+
		"so that one call of a driver cannot fill the API server")
	f.DurationVar(&l.AllocationTimeout, "allocation-timeout", 5*time.Minute,
		"how long a group's pods may fail to join Ray before launches of the group are paused; after a fifth of it "+
			"without a node, and without a word of a node autoscaler, the group counts as out of stock")
	f.DurationVar(&l.DrainDeadline, "drain-deadline", 10*time.Minute, "how long work may continue on a worker above "+
		"a lowered maximum")
	f.DurationVar(&l.ConsolidateAfter, "consolidate-after", 10*time.Minute,
		"how long a worker must be used a little, and "+
			"nothing may be launched, before it is drained because others have room for its work; only with the "+
			"annotation "+nodepool.ConsolidateAnnotation)
	f.BoolVar(&l.ProtectBusy, "protect-busy", false, "annotate heads and busy workers of managed RayClusters so that "+
		"Karpenter and the Cluster Autoscaler do not evict them; needs the verb patch on pods")
	o.check(f)
}

// check validates the values of the shared flags.
func (o *options) check(f *pflag.FlagSet) {
	l := &o.loop
	cli.ValidateString(f, "log-format", &o.logFormat, "json or text", isLogFormat)
	cli.ValidateString(f, "log-level", &o.logLevel, "debug, info, warn or error", isLogLevel)
	cli.ValidateDuration(f, "poll-rest", &l.RestPoll, 10*time.Millisecond, time.Hour)
	cli.ValidateDuration(f, "allocation-timeout", &l.AllocationTimeout, time.Second, day)
	cli.ValidateDuration(f, "drain-deadline", &l.DrainDeadline, time.Second, 365*day)
	cli.ValidateDuration(f, "consolidate-after", &l.ConsolidateAfter, time.Second, day)
	cli.Validate(f, "max-in-flight", fmt.Sprintf("a whole number from 1 to %d", math.MaxInt32),
		cli.Within(&l.MaxInFlight, 1, math.MaxInt32))
}

func isLogFormat(word string) bool {
	_, err := telemetry.NewLogger(io.Discard, word, "info")
	return err == nil
}

func isLogLevel(word string) bool {
	_, err := telemetry.NewLogger(io.Discard, "json", word)
	return err == nil
}
