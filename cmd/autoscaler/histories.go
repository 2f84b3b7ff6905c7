package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/internal/controller/outlook"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/histories"
)

// The values of --forecast.
const (
	forecastOff     = "off"
	forecastSuggest = "suggest"
	forecastAct     = "act"
)

const (
	// historyTick is how often it is checked which histories to read and to store.
	historyTick = 10 * time.Second
	// sweepEvery is how often histories that no longer count are removed.
	sweepEvery = 24 * time.Hour
	// historyPause is how long nothing is read or stored after an error.
	historyPause = 5 * time.Minute
)

// keepHistoriesOf keeps histories until ctx ends or the returned function is called, which waits.
func (o *engineOptions) keepHistoriesOf(
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
		(&historyKeeper{outlook: o.outlook, store: store, log: log}).run(ctx)
	}()
	return func() { cancel(); <-ended }, nil
}

// historyStore keeps histories for the next process.
type historyStore interface {
	Read(ctx context.Context, key nodepool.ClusterKey) ([]byte, error)
	Write(ctx context.Context, key nodepool.ClusterKey, history []byte, until time.Time) error
	Sweep(ctx context.Context, now time.Time) (removed int, err error)
}

// historyKeeper reads the histories of RayClusters that are new to this process, and stores them from time to time.
type historyKeeper struct {
	outlook *outlook.Outlook
	store   historyStore
	log     *slog.Logger
	// sweepAt is when old histories are removed next, restUntil until when nothing is tried after an error.
	sweepAt, restUntil time.Time
	forbidden, failing bool
}

// run keeps histories until ctx ends.
func (k *historyKeeper) run(ctx context.Context) {
	tick := time.NewTicker(historyTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			k.keep(ctx, now)
		}
	}
}

// keep reads and stores what is due.
func (k *historyKeeper) keep(ctx context.Context, now time.Time) {
	if k.forbidden || now.Before(k.restUntil) {
		return
	}
	err := k.work(ctx, now)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, histories.ErrForbidden):
		k.forbidden = true
		k.outlook.NotStored("Heliostat has no right to the ConfigMaps of its namespace")
		k.log.WarnContext(ctx, "histories of demand are lost when this process ends: grant get, list, create, update "+
			"and delete on configmaps in Heliostat's namespace, or set --forecast=off", "err", err)
	case err != nil:
		k.restUntil = now.Add(historyPause)
		if !k.failing {
			k.log.WarnContext(ctx, "histories of demand cannot be kept for now", "err", err)
		}
	}
	k.failing = err != nil
}

func (k *historyKeeper) work(ctx context.Context, now time.Time) error {
	for _, key := range k.outlook.Unread() {
		encoded, err := k.store.Read(ctx, key)
		if err != nil {
			return err
		}
		if err := k.outlook.Read(key, encoded); err != nil {
			k.log.WarnContext(ctx, "a stored history of demand is replaced", "cluster", key.String(), "err", err)
		}
	}
	for _, key := range k.outlook.Due(now) {
		encoded, until, known := k.outlook.Save(key, now)
		if !known {
			continue
		}
		if err := k.store.Write(ctx, key, encoded, until); err != nil {
			return err
		}
	}
	if now.Before(k.sweepAt) {
		return nil
	}
	k.sweepAt = now.Add(sweepEvery)
	_, err := k.store.Sweep(ctx, now)
	return err
}
