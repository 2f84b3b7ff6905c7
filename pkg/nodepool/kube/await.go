package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/nodepool/kube/timing"
)

// awaitPause is the pause between two attempts to reach the API server.
const awaitPause = 2 * time.Second

// Await returns nil when the API server responds, whatever it says. If a process exited because the API server is
// unreachable, its kubelet would restart it later and later, and it would be missing when the API server is back. The
// error is that of ctx, or says that the server is not the API server of config.
func Await(ctx context.Context, config *rest.Config, log *slog.Logger) error {
	client, err := discovery.NewDiscoveryClientForConfig(rest.CopyConfig(config))
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	for {
		err := ask(ctx, client)
		if untrusted := new(tls.CertificateVerificationError); errors.As(err, &untrusted) {
			return fmt.Errorf("reaching the API server at %s: %w", config.Host, err)
		}
		if !silent(err) {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		log.Warn("the API server does not respond; retrying", "host", config.Host, "err", err)
		if !timing.Sleep(ctx, timing.Jittered(awaitPause)) {
			return context.Cause(ctx)
		}
	}
}

func ask(ctx context.Context, client discovery.DiscoveryInterface) error {
	ctx, cancel := context.WithTimeout(ctx, timing.RequestTimeout)
	defer cancel()
	return client.RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Error()
}

// silent reports whether an error means that there was no response, or only one of a server that cannot serve now.
func silent(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	code := status.Status().Code
	return code >= 500 || code == 429
}
