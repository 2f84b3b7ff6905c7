package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
)

const (
	// awaitPause is the pause between two attempts to reach the API server.
	awaitPause = 2 * time.Second
	// missingAnswers is how many answers in a row prove that a resource is missing: an API server that starts does not
	// serve custom resources for a moment.
	missingAnswers = 3
)

// Connect is NewManager as soon as the API server answers what it asks. If a process exited because the API server is
// unreachable, its kubelet would restart it later and later, and it would be missing when the API server is back. The
// error is that of ctx, or says what is missing, or that the server is not the API server of config.
func Connect(ctx context.Context, config *rest.Config, options Options, log *slog.Logger) (*Manager, error) {
	for missing := 0; ; {
		var manager *Manager
		var err error
		tried := make(chan struct{})
		go func() {
			defer close(tried)
			manager, err = NewManager(config, options)
		}()
		select {
		case <-tried:
		case <-ctx.Done(): // a server that takes the call and never answers holds the attempt
			return nil, context.Cause(ctx)
		}
		if untrusted := new(tls.CertificateVerificationError); errors.As(err, &untrusted) {
			return nil, fmt.Errorf("reaching the API server at %s: %w", config.Host, err)
		}
		if missing++; !meta.IsNoMatchError(err) {
			missing = 0
		}
		if missing == 0 && !passing(err) || missing == missingAnswers {
			return manager, err
		}
		log.Warn("the API server does not answer which resources exist; retrying", "host", config.Host, "err", err)
		if !reflector.Sleep(ctx, reflector.Jittered(awaitPause)) {
			return nil, context.Cause(ctx)
		}
	}
}

// passing reports whether an error of NewManager is that of a connection, or of a server that cannot serve now.
func passing(err error) bool {
	var connection net.Error
	return reflector.Unserved(err) || errors.As(err, &connection)
}
