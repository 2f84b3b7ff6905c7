package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// face is one way to ask for capacity.
type face struct {
	name string
	// perCluster is how many requests one RayCluster has at once; each is replaced again and again.
	perCluster int
	// ask asks for an amount that nobody else asks for, in the place of what was asked for in the slot before.
	ask func(ctx context.Context, key nodepool.ClusterKey, slot, amount int) error
}

// bare are the same writes without Heliostat: what the API server itself takes.
func (f *fleet) bare() []face {
	return []face{
		{"resourcerequests patched, without Heliostat", requestsEach, f.patchRequest},
		{"rayclusters patched, without Heliostat", 1, f.patchAnnotation},
	}
}

// faces are both of Heliostat's.
func (f *fleet) faces() []face {
	owned := func(ctx context.Context, key nodepool.ClusterKey, slot, amount int) error {
		return f.ask(ctx, key, requestName(key, slot), amount)
	}
	plain := func(ctx context.Context, key nodepool.ClusterKey, _, amount int) error {
		return f.askPlainly(ctx, key, amount)
	}
	return []face{{"PUT …/request_resources/{id}", requestsEach, owned}, {"POST …/request_resources", 1, plain}}
}

// requestsEach is how many requests of owners one RayCluster has under load.
const requestsEach = 10

func requestName(key nodepool.ClusterKey, slot int) string {
	return fmt.Sprintf("%s-load-%d", key.Name, slot)
}

// afterwards is how long everything has to come to rest after a measurement.
const afterwards = 3 * time.Second

// markEvery is how many requests there are to one that is looked for in plans: to look costs the machine more than to
// ask. It shares no factor with the number of slots, so that all of them are looked for.
const markEvery = 19

// load asks rate times a second for the given time, whether earlier answers have come or not, and returns how long
// each answer took, and how many were not served, for there are too many. Amounts begin at first.
func (f *fleet) load(
	ctx context.Context, by face, first, rate int, long time.Duration, m *marks,
) (acks []time.Duration, refused int, err error) {
	all := make([]time.Duration, rate*int(long.Seconds())) // 0 is refused
	group, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for i := range all {
		time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			key, slot := f.keys[i%len(f.keys)], i/len(f.keys)%by.perCluster
			asked := time.Now()
			if m != nil && i%markEvery == 0 {
				m.add(key.Name, first+i)
			}
			err := by.ask(ctx, key, slot, first+i)
			if errors.Is(err, errTooMuch) {
				m.drop(key.Name, first+i)
				return nil
			}
			all[i] = time.Since(asked)
			return err
		})
	}
	err = group.Wait()
	acks = slices.DeleteFunc(all, func(took time.Duration) bool { return took == 0 })
	return acks, rate*int(long.Seconds()) - len(acks), err
}

// errTooMuch says that a call was not served, for there are too many.
var errTooMuch = errors.New("too much")

func tellRefused(refused int) {
	if refused > 0 {
		fmt.Printf("%d more were not served: the API server did not keep up\n", refused)
	}
}

// warm asks for all that is then replaced under load, so that nothing but that is measured.
func (f *fleet) warm(ctx context.Context, by face, first int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i := range len(f.keys) * by.perCluster {
		group.Go(func() error { return by.ask(ctx, f.keys[i%len(f.keys)], i/len(f.keys), first+i) })
	}
	return group.Wait()
}

// collect makes the API server collect garbage before a measurement, so that it need not during one.
func (f *fleet) collect(ctx context.Context) error {
	heap := f.Kube.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/heap")
	if err := heap.Param("gc", "1").Do(ctx).Error(); err != nil {
		return fmt.Errorf("collecting garbage in the API server: %w", err)
	}
	return nil
}

// measureBare measures the API server without Heliostat.
func (f *fleet) measureBare(ctx context.Context, rate int, long time.Duration) error {
	for _, by := range f.bare() {
		if err := f.warm(ctx, by, 1); err != nil {
			return fmt.Errorf("%s: %w", by.name, err)
		}
		if err := f.collect(ctx); err != nil {
			return err
		}
		before, begun := f.usage(), time.Now()
		acks, refused, err := f.load(ctx, by, 1000, rate, long, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", by.name, err)
		}
		head(
			fmt.Sprintf("%d a second for %.0f s, %d RayClusters: %s", rate, time.Since(begun).Seconds(), len(f.keys),
				by.name),
		)
		row("asked → acknowledged", acks)
		tellRefused(refused)
		f.tellUsage(before, time.Since(begun))
	}
	return f.removeRequests(ctx)
}

// measure measures both faces of Heliostat, one after the other, each without what was asked for by the one before.
func (f *fleet) measure(ctx context.Context, rate int, long time.Duration) error {
	for i, by := range f.faces() {
		if err := f.measureFace(ctx, by, (i+1)*100_000, rate, long); err != nil {
			return fmt.Errorf("%s: %w", by.name, err)
		}
		if err := f.removeRequests(ctx); err != nil {
			return fmt.Errorf("%s: %w", by.name, err)
		}
		time.Sleep(afterwards)
	}
	return nil
}

func (f *fleet) measureFace(ctx context.Context, by face, first, rate int, long time.Duration) error {
	following, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newMarks(len(f.keys) * by.perCluster)
	for _, key := range f.keys {
		go f.follow(following, key, m)
	}
	if err := f.warm(ctx, by, first); err != nil {
		return err
	}
	if err := f.collect(ctx); err != nil {
		return err
	}
	before, begun := f.usage(), time.Now()
	acks, refused, err := f.load(ctx, by, first+len(f.keys)*by.perCluster, rate, long, m)
	if err != nil {
		return err
	}
	took := time.Since(begun)
	for settled := time.Now(); m.missing() > 0 && time.Since(settled) < 10*time.Second; {
		time.Sleep(50 * time.Millisecond)
	}
	head(fmt.Sprintf("%d a second for %.0f s, %d RayClusters: %s", rate, took.Seconds(), len(f.keys), by.name))
	row("asked → acknowledged", acks)
	row("asked → in the plan", m.visible)
	tellRefused(refused)
	if missing := m.missing(); missing > 0 {
		return fmt.Errorf("%d of %d requests that were looked for are in no plan", missing, missing+len(m.visible))
	}
	f.tellUsage(before, took)
	return nil
}
