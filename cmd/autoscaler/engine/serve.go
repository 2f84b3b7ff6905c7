package engine

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/controller/mode"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
)

// Serve returns the command that scales the RayClusters of this Kubernetes cluster and serves the REST API.
func Serve() *cobra.Command {
	o := options{loop: controller.Config{Form: mode.Fleet}}
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
			config, err := cli.ReadPools(pools)
			if err != nil {
				return cli.BadInput(err)
			}
			if o.prices, err = cli.ReadPrices(prices); err != nil {
				return cli.BadInput(err)
			}
			if shards != "" {
				o.kube.Sharded = true
				o.kube.MostShards, _ = strconv.Atoi(shards) // "auto" is 0, which means all
			}
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
	f.Float32Var(&o.apiQPS, "kube-api-qps", kube.DefaultQPS, "average requests to the API server per second, up to "+
		"twice as many at once; writes for callers of the REST API have a separate limit of four times that, and "+
		"reviews of callers have one of their own")
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
		"namespace of the leader lease, and of the leases of shards")
	f.StringVar(&o.kube.LeaseName, "lease-name", "heliostat", "name of the leader lease; those of shards begin with it")
	f.StringVar(&o.ports.Advertised, "advertise-address", os.Getenv("POD_IP"),
		"IP address at which other replicas call this one's REST API, on the port of --listen, while it is the "+
			"leader or a shard; empty for none")
	f.StringVar(&requestMemory, "request-memory", requestMemory, "memory for the ResourceRequests of all owners, "+
		"shared fairly by namespaces and owners; requests beyond it do not count, and their status says so")
	cli.ValidateString(f, "request-memory", &requestMemory, "an amount of memory from 1Mi to 1Ti, such as 64Mi",
		func(text string) bool { return bytesOf(text) >= 1<<20 && bytesOf(text) <= 1<<40 })
	cli.ValidateString(f, "mode", &mode, "managed, shadow or off",
		func(word string) bool { return nodepool.Mode(word).Valid() })
	o.checkFleet(f)
	return cli.AddSettings(c)
}

// checkFleet validates the values of the flags that only `serve` has.
func (o *options) checkFleet(f *pflag.FlagSet) {
	cli.Validate(f, "namespaces", "a list of strings, each the name of a namespace", func() bool {
		return !slices.ContainsFunc(o.kube.Namespaces, func(name string) bool { return !cli.IsNamespace(name) })
	})
	cli.Validate(
		f,
		"node-autoscaler",
		"a list of strings, each the source of a node autoscaler's Events, as kubectl describe shows it under From",
		func() bool {
			return !slices.ContainsFunc(o.kube.NodeAutoscalers,
				func(name string) bool { return name == "" || name == corev1.DefaultSchedulerName })
		},
	)
	cli.Validate(f, "jobs-every", "0, or a duration from 10s to 24h", func() bool {
		every := o.loop.JobsEvery
		return every == 0 || every >= 10*time.Second && every <= 24*time.Hour
	})
	cli.ValidateString(f, "cluster-autoscaler-namespace", &o.kube.StatusNamespace, cli.WantNamespace, cli.IsNamespace)
	cli.ValidateString(f, "lease-namespace", &o.kube.LeaseNamespace, cli.WantNamespace, cli.IsNamespace)
	cli.ValidateString(
		f,
		"lease-name",
		&o.kube.LeaseName,
		"a string, the name of a Lease: at most 253 of a to z, 0 to 9, - and .",
		func(name string) bool {
			return len(validation.IsDNS1123Subdomain(name)) == 0
		},
	)
	const leastQPS, most = 0.1, 100_000 // client-go reads a negative value as no limit
	cli.Validate(
		f,
		"kube-api-qps",
		fmt.Sprintf("a number from %v to %v", leastQPS, most),
		cli.Within(&o.apiQPS, leastQPS, most),
	)
}

// isShards reports whether a text is a value of --shards.
func isShards(text string) bool {
	n, err := strconv.Atoi(text)
	return text == "" || text == "auto" || err == nil && n >= 1 && n <= 1000
}

// bytesOf parses an amount of memory as Kubernetes writes it, such as 64Mi; 0 if it is invalid.
func bytesOf(text string) int64 {
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return 0
	}
	return quantity.Value()
}
