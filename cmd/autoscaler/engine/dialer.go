package engine

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"strings"

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
			Timeout: o.loop.GCSTimeout,
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

// kubeRayTokenFile is where KubeRay mounts a ServiceAccount token into each Ray container and the sidecar, and where
// Ray looks for it, when authOptions.enableK8sTokenAuth is set (utils.RayTokenMountPath, v1.6.2).
const kubeRayTokenFile = "/var/run/secrets/ray.io/serviceaccount/token"

// rayEnvironment returns the value of a variable; empty if it is not set.
type rayEnvironment func(name string) string

// authenticateAsRay makes config use the token and the certificates that Ray's own autoscaler would use, and removes
// them from cluster.Auth. What the environment lacks stays in cluster.Auth. getenv returns the value of a variable, as
// os.Getenv does. An error means that the certificates cannot be read; a token file is read with each call of the head.
func authenticateAsRay(getenv func(name string) string, config *gcs.Config, cluster *nodepool.Cluster) error {
	env := rayEnvironment(getenv)
	if token := env.token(); token != nil {
		config.Token = token
		cluster.Auth = nodepool.Auth{TLSSecret: cluster.Auth.TLSSecret}
	}
	cert := env("RAY_TLS_SERVER_CERT")
	if cert == "" || cluster.Auth.TLSSecret == "" && !env.is("RAY_USE_TLS") {
		return nil
	}
	tls, err := gcs.FileTLS(env("RAY_TLS_CA_CERT"), cert, env("RAY_TLS_SERVER_KEY"), cluster.Head.ServiceFQDN)
	if err != nil {
		return fmt.Errorf("taking RAY_TLS_* from the environment: %w", err)
	}
	config.TLS, cluster.Auth.TLSSecret = tls, ""
	return nil
}

// token looks for a token in Ray's order (docs/reference/facts.md#token-and-tls); nil if none is set. It reads a file
// for each call, since projected tokens rotate.
func (env rayEnvironment) token() func(context.Context) (string, error) {
	file := env("RAY_AUTH_TOKEN_PATH")
	switch token := strings.TrimSpace(env("RAY_AUTH_TOKEN")); {
	case token != "":
		return func(context.Context) (string, error) { return token, nil }
	case file == "" && env.is("RAY_ENABLE_K8S_TOKEN_AUTH"):
		file = kubeRayTokenFile
	case file == "":
		return nil
	}
	return func(context.Context) (string, error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading Ray's token: %w", err)
		}
		return strings.TrimSpace(string(text)), nil
	}
}

func (env rayEnvironment) is(name string) bool {
	return env(name) == "1" || strings.EqualFold(env(name), "true")
}
