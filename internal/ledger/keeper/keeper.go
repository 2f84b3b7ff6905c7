// Package keeper keeps a ledger over restarts: it restores what an earlier process saved of each RayCluster, and saves
// what has changed. It must not know what holds the saved texts, or change what a ledger adds up.
package keeper

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Store holds a text for each RayCluster.
type Store interface {
	// Load returns the texts of all RayClusters. An error that wraps nodepool.ErrDenied means that another try is
	// useless: the ledger then begins anew with each process.
	Load(ctx context.Context) (map[nodepool.ClusterKey][]byte, error)
	// Save replaces texts; an empty one removes. An error that wraps nodepool.ErrFull means that they do not fit. Room
	// is how many bytes the text of one RayCluster may take.
	Save(ctx context.Context, texts map[nodepool.ClusterKey][]byte) error
	Room(key nodepool.ClusterKey) int
}

// Record is what is kept beside the ledger of each RayCluster, as JSON.
type Record interface {
	// Save returns the JSON, in less room if it is to be coarse; nil if there is none.
	Save(key nodepool.ClusterKey, now time.Time, coarse bool) json.RawMessage
	Restore(key nodepool.ClusterKey, saved json.RawMessage) error
	// Forget drops a RayCluster.
	Forget(key nodepool.ClusterKey)
}

// Config is what a Keeper needs.
type Config struct {
	Ledger *ledger.Ledger
	// Beside is nil if nothing is kept beside the ledger.
	Beside Record
	// Store is nil if nothing is kept.
	Store Store
	// Mine reports whether this process decides about a RayCluster now. Shared says that others decide about other
	// ones. Each process then has an Other of its own, which is not saved.
	Mine   func(nodepool.ClusterKey) bool
	Shared bool
	// Every is how often changes are saved; 5 minutes if it is zero.
	Every time.Duration
	Now   func() time.Time
	Log   *slog.Logger
}

// Keeper restores and saves a ledger. Only one goroutine may use it, but for HandOver.
type Keeper struct {
	Config
	// loaded: all that this process may restore at its beginning is restored. loadedAt is when the store was last read.
	loaded   bool
	loadedAt time.Time
	// forbidden: the store cannot be used, which was logged.
	forbidden bool
	failing   bool
	// saved is the number of the last change that was saved, and when.
	saved   int64
	savedAt time.Time
	// removed are RayClusters whose text is to be removed.
	removed []nodepool.ClusterKey

	mu sync.Mutex
	// leaving are RayClusters about which another process decides from now on. Guarded by mu.
	leaving []nodepool.ClusterKey
}

// every is how often changes are saved. reloads bounds how often the store is read while several processes share it,
// each time for all RayClusters that have come meanwhile.
const (
	every   = 5 * time.Minute
	reloads = 5 * time.Second
)

// New returns a Keeper.
func New(config Config) *Keeper {
	if config.Every == 0 {
		config.Every = every
	}
	return &Keeper{Config: config, savedAt: config.Now(), forbidden: config.Store == nil}
}

// HandOver lets the next tick save a RayCluster about which another process decides, and drop it.
func (k *Keeper) HandOver(key nodepool.ClusterKey) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.leaving = append(k.leaving, key)
}

func (k *Keeper) left() []nodepool.ClusterKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	left := k.leaving
	k.leaving = nil
	return left
}

// Run restores and saves until ctx ends, and then saves once more.
func (k *Keeper) Run(ctx context.Context, ticks <-chan time.Time) {
	const last = 2 * time.Second
	for {
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
			defer cancel()
			k.Save(ctx)
			return
		case <-ticks:
			k.Restore(ctx)
			left := k.left()
			if len(left) > 0 || k.Now().Sub(k.savedAt) >= k.Every {
				k.Save(ctx)
			}
			for _, key := range left {
				k.drop(key)
			}
			k.dropMoved()
		}
	}
}

// Restore restores the RayClusters that wait for it. A store that does not answer is asked again later; until then,
// nothing counts, so that nothing counts twice. A RayCluster about which this process does not decide now keeps
// waiting: it has moved on and is dropped soon, or the right to write comes back.
func (k *Keeper) Restore(ctx context.Context) {
	waiting := k.Ledger.Waiting()
	if k.Shared {
		waiting = slices.DeleteFunc(waiting, func(key nodepool.ClusterKey) bool { return !k.Mine(key) })
	}
	if len(waiting) == 0 {
		return
	}
	var texts map[nodepool.ClusterKey][]byte
	if !k.forbidden && (!k.loaded || k.Shared) {
		now := k.Now()
		if k.loaded && now.Sub(k.loadedAt) < reloads {
			return
		}
		k.loadedAt = now
		var err error
		if texts, err = k.Store.Load(ctx); err != nil {
			k.failed("reading", err)
			if !k.forbidden {
				return
			}
		}
	}
	waits := make(map[nodepool.ClusterKey]bool, len(waiting))
	for _, key := range waiting {
		waits[key] = true
	}
	oldest := k.Now().Add(-ledger.Retention)
	for key, text := range texts {
		mine := waits[key] || !k.loaded && (!k.Shared || k.Mine(key))
		if !mine && k.loaded {
			continue // another process has it, or it is restored
		}
		saved, err := decode(text)
		switch {
		case err == nil && time.Unix(int64(saved.Until), 0).Before(oldest):
			k.removed = append(k.removed, key)
		case !mine: // another process restores it, also if this one cannot read it
		case err != nil:
			k.Log.Warn("what was saved of the costs of a RayCluster cannot be read, so they begin anew", "cluster",
				key.String(), "err", err)
			k.removed = append(k.removed, key)
		default:
			k.restore(key, saved)
		}
	}
	k.loaded = true
	for _, key := range waiting {
		k.Ledger.Restore(key, nil) // does nothing if it was restored
	}
}

// dropMoved drops RayClusters that were restored, and moved on before this process observed them. Nothing hands these
// over, and another process adds them up.
func (k *Keeper) dropMoved() {
	if !k.Shared {
		return
	}
	for _, key := range k.Ledger.Unseen() {
		if !k.Mine(key) {
			k.drop(key)
		}
	}
}

func (k *Keeper) drop(key nodepool.ClusterKey) {
	k.Ledger.Release(key)
	if k.Beside != nil {
		k.Beside.Forget(key)
	}
}

// restore restores one RayCluster.
func (k *Keeper) restore(key nodepool.ClusterKey, saved *kept) {
	k.Ledger.Restore(key, saved.Saved)
	if k.Beside == nil || len(saved.Beside) == 0 || saved.Gone > 0 {
		return
	}
	if err := k.Beside.Restore(key, saved.Beside); err != nil {
		k.Log.Warn("what was recorded of a RayCluster for savings cannot be read, so it begins anew", "cluster",
			key.String(), "err", err)
	}
}

// failed logs an error once, until it is another one.
func (k *Keeper) failed(doing string, err error) {
	if errors.Is(err, nodepool.ErrDenied) {
		k.forbidden = true
		k.Log.Warn("the costs of RayClusters are not kept over restarts", "doing", doing, "err", err)
		return
	}
	if !k.failing {
		k.Log.Warn("the costs of RayClusters cannot be kept now", "doing", doing, "err", err)
	}
	k.failing = true
}

// Save saves what has changed since the last time.
func (k *Keeper) Save(ctx context.Context) {
	now := k.Now()
	k.savedAt = now
	expired := k.Ledger.Expire(now)
	k.removed = append(k.removed, expired...)
	if k.Beside != nil {
		for _, key := range expired {
			k.Beside.Forget(key)
		}
	}
	if k.forbidden {
		k.removed = nil
		return
	}
	changed, last := k.Ledger.Changed(k.saved)
	texts := make(map[nodepool.ClusterKey][]byte, len(changed)+len(k.removed))
	for _, key := range k.removed {
		texts[key] = nil
	}
	for _, key := range changed {
		if k.Shared && key.Name == ledger.Other {
			continue
		}
		saved := k.Ledger.Save(key, now)
		if saved == nil {
			continue
		}
		text, err := k.encode(key, saved, now)
		if err != nil {
			k.Log.Error("cannot encode costs", "cluster", key.String(), "err", err)
			continue
		}
		texts[key] = text
	}
	if len(texts) == 0 {
		return
	}
	if err := k.Store.Save(ctx, texts); err != nil {
		k.failed("saving", err)
		if errors.Is(err, nodepool.ErrFull) {
			k.saved = -1 // all texts must become smaller, also those that have not changed
		}
		return
	}
	k.saved, k.removed, k.failing = last, nil, false
}

// kept is what the text of a RayCluster says.
type kept struct {
	*ledger.Saved
	Beside json.RawMessage `json:"savings,omitempty"`
}

// encode returns the compressed JSON, made coarser until it takes no more than the room: first what is beside the
// ledger, then the ledger's hours; then only the ledger is left.
func (k *Keeper) encode(key nodepool.ClusterKey, saved *ledger.Saved, now time.Time) ([]byte, error) {
	room := k.Store.Room(key)
	if k.Beside != nil {
		for _, coarse := range []bool{false, true} {
			text, err := compressed(kept{saved, k.Beside.Save(key, now, coarse)})
			if err != nil || len(text) <= room {
				return text, err
			}
		}
		coarser, _ := saved.Coarser()
		text, err := compressed(kept{coarser, k.Beside.Save(key, now, true)})
		if err != nil || len(text) <= room {
			return text, err
		}
	}
	for {
		text, err := compressed(kept{Saved: saved})
		if err != nil || len(text) <= room {
			return text, err
		}
		coarser, smaller := saved.Coarser()
		if !smaller {
			return text, nil
		}
		saved = coarser
	}
}

func compressed(value kept) ([]byte, error) {
	var text bytes.Buffer
	w := gzip.NewWriter(&text)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		return nil, err
	}
	err := w.Close()
	return text.Bytes(), err
}

// maxText bounds what is decompressed of one RayCluster.
const maxText = 4 << 20

func decode(text []byte) (*kept, error) {
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxText+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > maxText {
		return nil, fmt.Errorf("it has more than %d bytes", maxText)
	}
	saved := &kept{Saved: &ledger.Saved{}}
	if err := json.Unmarshal(plain, saved); err != nil {
		return nil, err
	}
	return saved, saved.Check()
}
