package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"heliostat.dev/heliostat/internal/controller/head"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/serve"
)

// servesWith returns a function that reads how many replicas Serve wants, at the dashboard of a head.
func servesWith(
	credentialsOf func(context.Context, nodepool.Cluster) (kube.Credentials, error), timeout time.Duration,
) func(context.Context, nodepool.Cluster) ([]raydemand.Deployment, error) {
	return func(ctx context.Context, cluster nodepool.Cluster) ([]raydemand.Deployment, error) {
		if cluster.Head.IP == "" {
			return nil, head.ErrNoAddress
		}
		credentials, err := credentialsOf(ctx, cluster)
		if err != nil {
			return nil, err
		}
		if credentials.Token != "" && cluster.Auth.TLSSecret != "" {
			return nil, errors.New("the head requires a token and TLS, and its dashboard has no TLS: " +
				"Heliostat does not send the token over a connection that anybody can read")
		}
		return serve.Read(ctx, serve.Config{Timeout: timeout, Token: credentials.Token,
			Address: net.JoinHostPort(cluster.Head.IP, fmt.Sprint(cluster.Head.DashboardPort))})
	}
}
