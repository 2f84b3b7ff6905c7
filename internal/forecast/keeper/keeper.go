// Package keeper keeps histories of demand over restarts: it reads what an earlier process stored of each RayCluster,
// and stores what has changed since. It must not read Kubernetes, or know what histories say. Only its advice names
// what stores them.
package keeper

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"heliostat.dev/heliostat/internal/controller/outlook"
	"heliostat.dev/heliostat/pkg/nodepool"
)

const (
	// tick is how often it is checked which histories to read and to store.
	tick = 10 * time.Second
	// sweepEvery is how often histories that no longer count are removed.
	sweepEvery = 24 * time.Hour
	// pause is how long nothing is read or stored after an error.
	pause = 5 * time.Minute
)

// Store holds a history of demand for each RayCluster. An error of Read or Write that wraps nodepool.ErrDenied means
// that another try is useless: histories then end with the process.
type Store interface {
	// Read returns a history; empty if there is none.
	Read(ctx context.Context, key nodepool.ClusterKey) ([]byte, error)
	// Write replaces a history. It counts until a moment.
	Write(ctx context.Context, key nodepool.ClusterKey, history []byte, until time.Time) error
	// Sweep removes histories that no longer count at now, and returns how many.
	Sweep(ctx context.Context, now time.Time) (removed int, err error)
}

// Keeper reads the histories of RayClusters that are new to this process, and stores them from time to time. Only one
// goroutine may use it.
type Keeper struct {
	outlook *outlook.Outlook
	store   Store
	log     *slog.Logger
	// sweepAt is when old histories are removed next, restUntil until when nothing is tried after an error.
	sweepAt, restUntil time.Time
	forbidden, failing bool
}

// New returns a Keeper of the histories in o. It logs a warning when histories cannot be kept, once until they can.
func New(o *outlook.Outlook, store Store, log *slog.Logger) *Keeper {
	return &Keeper{outlook: o, store: store, log: log}
}

// Run keeps histories until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticks.C:
			k.keep(ctx, now)
		}
	}
}

// keep reads and stores what is due.
func (k *Keeper) keep(ctx context.Context, now time.Time) {
	if k.forbidden || now.Before(k.restUntil) {
		return
	}
	err := k.work(ctx, now)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, nodepool.ErrDenied):
		k.forbidden = true
		k.outlook.NotStored("Heliostat has no right to the ConfigMaps of its namespace")
		k.log.WarnContext(ctx, "histories of demand are lost when this process ends: grant get, list, create, update "+
			"and delete on configmaps in Heliostat's namespace, or set --forecast=off", "err", err)
	case err != nil:
		k.restUntil = now.Add(pause)
		if !k.failing {
			k.log.WarnContext(ctx, "histories of demand cannot be kept for now", "err", err)
		}
	}
	k.failing = err != nil
}

func (k *Keeper) work(ctx context.Context, now time.Time) error {
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
