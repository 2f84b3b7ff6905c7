package engine

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// raysMetrics is where Ray's own autoscaler serves metrics: the port that RayClusters and PodMonitors call as-metrics
// (docs/reference/facts.md#autoscaler-metrics). It may be in use if heads share a node's network.
const raysMetrics = ":44217"

// Sidecar returns the command that KubeRay starts in the head pod: `ray kuberay-autoscaler --cluster-name …
// --cluster-namespace …`. It runs the same engine for one RayCluster, with the Role that KubeRay grants. It ignores
// flags that only Ray's own autoscaler knows, so that newer operators do not break it.
func Sidecar() *cobra.Command {
	// The other ports of the head pod belong to Ray and its users.
	o := newOptions(controller.Sidecar, portFlags{Metrics: raysMetrics})
	key := nodepool.ClusterKey{Name: os.Getenv("RAY_CLUSTER_NAME"), Namespace: os.Getenv("RAY_CLUSTER_NAMESPACE")}
	c := &cobra.Command{
		Use:                "kuberay-autoscaler",
		Short:              "Scales the RayCluster whose head pod this runs in",
		Args:               cli.NoArguments,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(c *cobra.Command, _ []string) error {
			if key.Name == "" || key.Namespace == "" {
				return cli.BadInput(errors.New("--cluster-name and --cluster-namespace are required"))
			}
			o.kube.Single = &key
			o.ports.MetricsIfFree = !c.Flags().Changed("metrics-bind-address")
			err := o.run(c)
			if errors.Is(err, errParked) {
				err = startAgain()
			}
			return err
		},
	}
	o.addFlags(c)
	f := c.Flags()
	f.StringVar(&key.Name, "cluster-name", key.Name, "name of the RayCluster")
	f.StringVar(&key.Namespace, "cluster-namespace", key.Namespace, "namespace of the RayCluster")
	cli.Group(f, cli.ScalingFlags)
	cli.Address(f, &o.gcsAddress, "gcs-address", "host:port of the GCS (default: the head pod's address)")
	cli.Group(f, cli.RayFlags)
	cli.RefuseRemovedFlags(c)
	return cli.AddSettings(c)
}
