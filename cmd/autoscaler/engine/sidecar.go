package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/cli"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
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
		Args:               cli.Arguments(0, 0),
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
	cli.Address(f, &o.gcsAddress, "gcs-address", "host:port of the GCS (default: the head pod's address)")
	return cli.SetByEnvironment(c)
}

// parkedPoll is how often a parked sidecar looks whether the fleet still manages its RayCluster: rarely, because a
// fleet has thousands of them, and often enough to take over soon.
const parkedPoll = 15 * time.Second

var rayClusters = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}

// errParked ends the engine of a sidecar whose RayCluster the fleet manages.
var errParked = errors.New("the fleet manages this RayCluster")

// parkIf ends the engine after a decision that found the RayCluster in the hands of the fleet.
func (o *options) parkIf(d *addon.Decision) {
	if o.kube.Single != nil && d.Why.Code == addon.Parked {
		o.park()
	}
}

// startAgain replaces the process by a new one, which is parked: a process that has run the engine keeps its memory.
func startAgain() error {
	program, err := os.Executable()
	if err == nil {
		err = syscall.Exec(program, os.Args, os.Environ()) //nolint:gosec // its own command line
	}
	return fmt.Errorf("parking: %w", err)
}

// waitWhileParked returns when the annotation of the RayCluster does not give it to the fleet, or when that is unknown
// from the start: the engine then waits for the API server, and parks itself if need be. It reads only metadata. The
// annotation is all that both this process and the fleet decide by.
func waitWhileParked(
	ctx context.Context, config *rest.Config, key nodepool.ClusterKey, pause time.Duration, log *slog.Logger,
) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	parked := false
	for {
		call, done := context.WithTimeout(ctx, reflector.RequestTimeout)
		cluster, err := client.Resource(rayClusters).Namespace(key.Namespace).
			Get(call, key.Name, metav1.GetOptions{})
		done()
		switch {
		case err != nil && !parked:
			return nil
		case err != nil: // as it was
		case cluster.Annotations[decode.ModeAnnotation] != string(nodepool.Managed):
			return nil
		case !parked:
			parked = true
			log.Info("parked: the annotation heliostat.dev/mode: managed gives the RayCluster to the fleet",
				"cluster", key.String())
		}
		if !reflector.Sleep(ctx, reflector.Jittered(pause)) {
			return nil
		}
	}
}
