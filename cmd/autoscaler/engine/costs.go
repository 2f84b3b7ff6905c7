package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/ledger/keeper"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/costs"
)

// keep keeps the costs over restarts until ctx ends, or until the function that it returns is called, which waits until
// they are saved. Without the right to keep them, or unasked, they begin anew.
func (o *options) keep(
	ctx context.Context,
	log *slog.Logger,
	manager *kube.Manager,
	config *rest.Config,
) (end func(), err error) {
	settings := keeper.Config{Ledger: o.costs.Ledger, Beside: o.costs.History, Mine: manager.MayWrite,
		Shared: o.kube.Sharded, Now: time.Now, Log: log}
	if o.keepCosts && !o.loop.ReadOnly {
		core, err := corev1client.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("connecting for costs: %w", err)
		}
		settings.Store = costs.NewStore(core.ConfigMaps(o.kube.LeaseNamespace), o.kube.LeaseName+"-costs")
	}
	k := keeper.New(settings)
	o.costs.HandOver = k.HandOver
	ctx, cancel := context.WithCancel(ctx)
	var runs sync.WaitGroup
	runs.Go(func() {
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		k.Run(ctx, ticks.C)
	})
	return func() {
		cancel()
		runs.Wait()
	}, nil
}
