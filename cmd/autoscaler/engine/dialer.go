package engine

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
)

// dialer connects to a head at its pod's address, with the credentials that the RayCluster names; a sidecar connects to
// its own head.
func (o *options) dialer(manager *kube.Manager) addon.Dialer {
	return func(ctx context.Context, cluster nodepool.Cluster) (addon.Ray, error) {
		config := gcs.Config{
			Address: cmp.Or(o.gcsAddress, net.JoinHostPort(cluster.Head.IP, fmt.Sprint(cluster.Head.GCSPort))),
			Timeout: o.loop.GCSTimeout, DrainTimeout: o.loop.GCSTimeout,
		}
		// A sidecar is in a pod of the RayCluster, and no policy of it closes the head to its own pods.
		if closed := cluster.Head.ClosedBy; closed != "" && o.kube.Single == nil {
			config.ClosedBy = closed + ": `autoscaler doctor` prints the ingress rule for Heliostat"
		}
		if o.kube.Single != nil {
			if err := authenticateAsRay(os.Getenv, &config, &cluster); err != nil {
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
