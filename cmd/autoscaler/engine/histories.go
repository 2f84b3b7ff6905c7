package engine

import (
	"context"
	"log/slog"

	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/forecast/keeper"
	"heliostat.dev/heliostat/pkg/nodepool/kube/histories"
)

// keepHistoriesOf keeps histories until ctx ends or the returned function is called, which waits.
func (o *options) keepHistoriesOf(
	ctx context.Context, config *rest.Config, log *slog.Logger,
) (end func(), err error) {
	store, err := histories.Connect(config, o.kube.LeaseNamespace)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		keeper.New(o.outlook, store, log).Run(ctx)
	}()
	return func() { cancel(); <-ended }, nil
}
