package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/test/rig"
)

// stand has so many requests stand at once, measures rest, and then asks here and there.
func (f *fleet) stand(ctx context.Context, requests int, rest time.Duration) error {
	before, err := rig.UsageOf(f.heliostat.PID())
	if err != nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	begun := time.Now()
	for i := range requests {
		group.Go(func() error {
			key := f.keys[i%len(f.keys)]
			return f.ask(gctx, key, fmt.Sprintf("%s-stand-%d", key.Name, i/len(f.keys)), 1+i)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	made := time.Since(begun)
	time.Sleep(10 * time.Second) // statuses are written
	quiet, err := rig.UsageOf(f.heliostat.PID())
	if err != nil {
		return err
	}
	ages, err := f.ages(ctx, rest)
	if err != nil {
		return err
	}
	after, err := rig.UsageOf(f.heliostat.PID())
	if err != nil {
		return err
	}
	visible, err := f.probe(ctx, 50)
	if err != nil {
		return err
	}
	head(
		fmt.Sprintf("%d requests of owners over %d RayClusters, made in %.0f s", requests, len(f.keys), made.Seconds()))
	row("age of a decision, at rest", ages)
	row("asked → in the plan, one at a time", visible)
	fmt.Printf(
		"\nautoscaler serve at rest: %.0f %% of a core; resident %d MiB without requests, %d MiB with, peak %d MiB\n",
		100*(after.CPU-quiet.CPU).Seconds()/rest.Seconds(), before.Resident>>20, after.Resident>>20, after.Peak>>20)
	return nil
}

// ages samples how old the last decision about each RayCluster is.
func (f *fleet) ages(ctx context.Context, long time.Duration) ([]time.Duration, error) {
	var ages []time.Duration
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(long / 10) {
		var list apiv1.ClusterList
		if err := f.get(ctx, "/v1/rayclusters", &list); err != nil {
			return nil, err
		}
		now := time.Now()
		for _, cluster := range list.Items {
			if cluster.LastCycle != nil {
				ages = append(ages, now.Sub(*cluster.LastCycle))
			}
		}
	}
	return ages, nil
}

// probe asks one after the other, each of a RayCluster by chance, and waits until the plan has it.
func (f *fleet) probe(ctx context.Context, times int) ([]time.Duration, error) {
	m := newMarks(1_000_000)
	for i := range times {
		key := f.keys[rand.IntN(len(f.keys))]
		listening, cancel := context.WithCancel(ctx)
		go f.follow(listening, key, m)
		m.add(key.Name, 500_000+i)
		err := f.ask(ctx, key, key.Name+"-probe", 500_000+i)
		for begun := time.Now(); err == nil && m.missing() > 0; time.Sleep(5 * time.Millisecond) {
			if time.Since(begun) > patience {
				err = fmt.Errorf("a request for %s is in no plan after %v", key, patience)
			}
		}
		cancel()
		if err != nil {
			return nil, err
		}
	}
	return m.visible, nil
}
