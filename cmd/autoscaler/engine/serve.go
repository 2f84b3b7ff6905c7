package engine

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
)

// Serve returns the command that scales the RayClusters of this Kubernetes cluster and serves the REST API.
func Serve() *cobra.Command {
	o := newOptions(controller.Fleet, portFlags{REST: api.DefaultListen, Advertised: os.Getenv("POD_IP")})
	o.apiQPS = kube.DefaultQPS
	o.kube = kube.Options{LeaseName: "heliostat", LeaseNamespace: cmp.Or(os.Getenv("POD_NAMESPACE"), "default"),
		StatusNamespace: "kube-system"}
	mode, pools := string(nodepool.Shadow), ""
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
		Args: cli.Arguments(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("mode") {
				o.loop.DefaultMode = nodepool.Mode(mode)
			}
			if err := checkLists(&o.kube); err != nil {
				return cli.BadInput(err)
			}
			config, err := cli.ReadPools(pools)
			if err != nil {
				return cli.BadInput(err)
			}
			if o.kube.Sharded && o.kube.LeaderElection {
				return cli.BadInput(errors.New("want --shards or --leader-elect: shards have leases of their own"))
			}
			o.kube.Pools, o.kube.ReadOnly = config, o.loop.ReadOnly
			return o.run(c)
		},
	}
	o.addFlags(c)
	f := c.Flags()
	cli.Word(f, &mode, "mode", "mode of RayClusters without the annotation heliostat.dev/mode, in namespaces without "+
		"it", string(nodepool.Managed), string(nodepool.Shadow), string(nodepool.Off))
	f.BoolVar(&o.loop.ReadOnly, "read-only", false, "write to no RayCluster and to no ResourceRequest, whatever an "+
		"annotation or a request says; RayClusters in mode managed become shadow")
	f.StringSliceVar(&o.kube.Namespaces, "namespaces", nil, "only RayClusters of these namespaces (default all)")
	f.BoolVar(&o.kube.Provisioning, "provisioning-requests", false, "create ProvisioningRequests of the Cluster "+
		"Autoscaler for gangs of groups with the annotation "+nodepool.ProvisioningAnnotation+"; needs rights on "+
		"provisioningrequests, podtemplates and pods")
	f.BoolVar(&o.kube.WarmNodes, "warm-nodes", false, "keep nodes without workers ready where a capacity policy says "+
		"so (keepWarmNodes), with CapacityBuffers of Karpenter or GKE; needs rights on capacitybuffers and "+
		"podtemplates")
	f.BoolVar(&o.features.reclaim.On, "reclaim", false, "take GPUs from managed RayClusters with the annotation "+
		giveback.ReclaimableAnnotation+" for RayClusters of higher priority that full pools keep waiting; without it, "+
		"status only shows what would be taken")
	cli.Number(f, &o.features.reclaim.PerHour, "reclaim-gpus-per-hour", 1, giveback.MaxGPUs, "most GPUs that "+
		"--reclaim takes from one RayCluster in an hour")
	cli.Duration(f, &o.features.reclaim.MinRuntime, "reclaim-min-runtime", 0, 365*day, "how long a worker runs at "+
		"least before --reclaim takes it")
	f.StringVar(&pools, "pools", "",
		"a file that describes pools of nodes, such as pools that have no nodes now (docs/reference/gpus.md)")
	cli.Namespace(f, &o.kube.StatusNamespace, "cluster-autoscaler-namespace",
		"namespace of the Cluster Autoscaler's ConfigMap cluster-autoscaler-status")
	f.StringVar(&o.kube.KubernetesTokenFile, "gcs-kubernetes-token-file", "",
		"ServiceAccount token file for heads with enableK8sTokenAuth, shared with every such head; grant it only "+
			"ray:write on RayClusters (default: such heads are not called)")
	cli.Number(f, &o.apiQPS, "kube-api-qps", 0.1, 100_000, "average requests to the API server per second, up to "+
		"twice as many at once; writes for callers of the REST API have a separate limit of four times that, and "+
		"reviews of callers have one of their own")
	f.BoolVar(&o.kube.LeaderElection, "leader-elect", false, "run several replicas, of which one is the leader and "+
		"decides")
	f.BoolVar(&o.kube.Sharded, "shards", false, "run several replicas that divide the RayClusters among them; "+
		"excludes --leader-elect")
	cli.Namespace(f, &o.kube.LeaseNamespace, "lease-namespace",
		"namespace of the leader lease, and of the leases of shards")
	cli.Text(f, &o.kube.LeaseName, "lease-name", "name of the leader lease; those of shards begin with it",
		"a string, the name of a Lease: at most 253 of a to z, 0 to 9, - and .",
		func(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 })
	f.StringVar(&o.ports.Advertised, "advertise-address", o.ports.Advertised,
		"IP address at which other replicas call this one's REST API, on the port of --listen, while it is the "+
			"leader or a shard; empty for none")
	return cli.SetByEnvironment(c)
}

// checkLists returns an error about the first bad item of a flag that is a list.
func checkLists(o *kube.Options) error {
	for _, name := range o.Namespaces {
		if !cli.IsNamespace(name) {
			return fmt.Errorf("--namespaces %q: want a list of strings, each the name of a namespace", name)
		}
	}
	return nil
}
