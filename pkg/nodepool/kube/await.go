package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

// awaitPause is the pause between two attempts to reach the API server.
const awaitPause = 2 * time.Second

// Connect is NewManager as soon as the API server answers what it asks. An API server that has just answered may still
// fail the next call, and the process must not exit because of that, as Await explains. One that starts does not serve
// custom resources for a moment, so a resource is missing only if the server was ready before two attempts in a row.
func Connect(ctx context.Context, config *rest.Config, options Options, log *slog.Logger) (*Manager, error) {
	client, err := discovery.NewDiscoveryClientForConfig(rest.CopyConfig(config))
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	for ready := 0; ; {
		if err := Await(ctx, config, log); err != nil {
			return nil, err
		}
		if ready++; silent(ask(ctx, client, "/readyz")) {
			ready = 0
		}
		manager, err := NewManager(config, options)
		if !passing(err) && (!meta.IsNoMatchError(err) || ready > 1) {
			return manager, err
		}
		log.Warn("the API server does not answer which resources exist; retrying", "host", config.Host, "err", err)
		if !reflector.Sleep(ctx, reflector.Jittered(awaitPause)) {
			return nil, context.Cause(ctx)
		}
	}
}

// Await returns nil when the API server responds, whatever it says. If a process exited because the API server is
// unreachable, its kubelet would restart it later and later, and it would be missing when the API server is back. The
// error is that of ctx, or says that the server is not the API server of config.
func Await(ctx context.Context, config *rest.Config, log *slog.Logger) error {
	client, err := discovery.NewDiscoveryClientForConfig(rest.CopyConfig(config))
	if err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	for {
		err := ask(ctx, client, "/version")
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
		if !reflector.Sleep(ctx, reflector.Jittered(awaitPause)) {
			return context.Cause(ctx)
		}
	}
}

func ask(ctx context.Context, client discovery.DiscoveryInterface, path string) error {
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	return client.RESTClient().Get().AbsPath(path).MaxRetries(0).Do(ctx).Error()
}

// silent reports whether an error means that there was no response, or only one of a server that cannot serve now.
func silent(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err != nil
	}
	return unable(status)
}

// passing reports whether an error of NewManager is that of a connection, or of a server that cannot serve now. A
// resource that does not exist, for example, is neither.
func passing(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return unable(status)
	}
	var connection net.Error
	return errors.As(err, &connection)
}

func unable(status apierrors.APIStatus) bool {
	code := status.Status().Code
	return code >= 500 || code == 429
}
