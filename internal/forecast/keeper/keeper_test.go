package keeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/outlook"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// fakeHistories are stored histories.
type fakeHistories struct {
	stored        map[nodepool.ClusterKey][]byte
	calls, sweeps int
	err           error // of the next calls
}

func (f *fakeHistories) Read(_ context.Context, key nodepool.ClusterKey) ([]byte, error) {
	f.calls++
	return f.stored[key], f.err
}

func (f *fakeHistories) Write(_ context.Context, key nodepool.ClusterKey, history []byte, _ time.Time) error {
	f.calls++
	if f.err == nil {
		f.stored[key] = history
	}
	return f.err
}

func (f *fakeHistories) Sweep(context.Context, time.Time) (int, error) {
	f.sweeps++
	return 0, f.err
}

// keeping is a keeper of a RayCluster that was seen at noon.
func keeping() (*Keeper, *fakeHistories, *bytes.Buffer, *decision.Decision) {
	log, store := &bytes.Buffer{}, &fakeHistories{stored: map[nodepool.ClusterKey][]byte{}}
	k := New(outlook.New(""), store, slog.New(slog.NewTextHandler(log, nil)))
	d := &decision.Decision{Cluster: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, Mode: nodepool.Managed,
		At:       time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC),
		Snapshot: planner.Snapshot{Groups: []planner.Group{{Name: "gpu", Max: 1}}}}
	k.outlook.Observe(d)
	return k, store, log, d
}

func TestHistoriesGoFromOneProcessToTheNext(t *testing.T) {
	ctx := context.Background()
	k, store, _, d := keeping()
	k.keep(ctx, d.At)
	if store.calls != 1 || store.sweeps != 1 || len(store.stored) != 0 {
		t.Errorf("at first %d calls, %d sweeps, stored %v", store.calls, store.sweeps, store.stored)
	}
	k.keep(ctx, d.At.Add(3*time.Hour))
	if len(store.stored) != 1 || store.sweeps != 1 {
		t.Errorf("after three hours, %d are stored, and %d sweeps", len(store.stored), store.sweeps)
	}
	k.keep(ctx, d.At.Add(25*time.Hour))
	if store.sweeps != 2 {
		t.Errorf("after a day, %d sweeps", store.sweeps)
	}

	next, _, _, later := keeping()
	next.store = store
	later.At = d.At.Add(26 * time.Hour)
	next.outlook = outlook.New("")
	next.outlook.Observe(later)
	next.keep(ctx, later.At)
	if a := next.outlook.Of(later, later.At); !a.From.Equal(d.At) {
		t.Errorf("the next process has a history from %v, want from %v", a.From, d.At)
	}

	store.stored[d.Cluster] = []byte("nonsense")
	again, _, log, d := keeping() // a process that finds what it cannot read
	again.store = store
	again.keep(ctx, d.At)
	again.keep(ctx, d.At.Add(3*time.Hour))
	if !strings.Contains(log.String(), "a stored history of demand is replaced") ||
		string(store.stored[d.Cluster]) == "nonsense" {
		t.Errorf("it has %q; log: %s", store.stored[d.Cluster], log)
	}
}

func TestWithoutTheRightHistoriesStayInMemory(t *testing.T) {
	ctx := context.Background()
	k, store, log, d := keeping()
	store.err = fmt.Errorf("reading: %w", nodepool.ErrDenied)
	for i := range 3 {
		k.keep(ctx, d.At.Add(time.Duration(i)*time.Hour))
	}
	if store.calls != 1 || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "--forecast=off") {
		t.Errorf("%d calls, want one; log:\n%s", store.calls, log)
	}
	if a := k.outlook.Of(d, d.At); !strings.Contains(a.NotStored, "no right") || a.From.IsZero() {
		t.Errorf("%+v", a)
	}
}

func TestAfterAnErrorTheKeeperRests(t *testing.T) {
	ctx := context.Background()
	k, store, log, d := keeping()
	store.err = errors.New("the API server is away")
	for i := range 40 {
		k.keep(ctx, d.At.Add(time.Duration(i)*tick))
	}
	if store.calls != 2 || strings.Count(log.String(), "cannot be kept for now") != 1 {
		t.Errorf("%d calls in less than seven minutes, want 2; log:\n%s", store.calls, log)
	}
	store.err = nil
	k.keep(ctx, d.At.Add(time.Hour))
	k.keep(ctx, d.At.Add(3*time.Hour))
	if len(store.stored) != 1 {
		t.Error("later, nothing is stored")
	}
}
