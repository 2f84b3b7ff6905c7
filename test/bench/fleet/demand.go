package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// demand submits tasks that need workers of group burst, and measures how long a patch takes. A RayCluster is busy from
// its task until the worker that came for it is gone again.
type demand struct {
	fleet    *fleet
	operator *operator

	active []atomic.Bool // by RayCluster: it has or had work a moment ago
	busy   int           // the RayClusters from 0 are always busy

	mu sync.Mutex // guards what follows
	// patched has the times from a task to the patch, of RayClusters that are busy and of those at rest.
	patched map[bool][]time.Duration
	late    int
}

func (f *fleet) startDemand(ctx context.Context, o *operator, busy int) *demand {
	d := &demand{fleet: f, operator: o, active: make([]atomic.Bool, len(f.owners)), busy: busy,
		patched: map[bool][]time.Duration{}}
	for i := range busy {
		go d.work(ctx, i)
	}
	go d.probe(ctx)
	return d
}

// work keeps one RayCluster busy.
func (d *demand) work(ctx context.Context, i int) {
	d.active[i].Store(true)
	for ctx.Err() == nil {
		time.Sleep(time.Duration(rand.Int64N(int64(3 * time.Second))))
		d.burst(ctx, i, 1+rand.IntN(3), true)
	}
}

// probe submits a task each second to a RayCluster that rests and had no task before.
func (d *demand) probe(ctx context.Context) {
	for _, at := range rand.Perm(len(d.fleet.owners) - d.busy) {
		select {
		case <-time.After(time.Duration(number("PROBE_MS", 1000)) * time.Millisecond):
		case <-ctx.Done():
			return
		}
		go func() {
			i := d.busy + at
			d.active[i].Store(true)
			d.burst(ctx, i, 1, false)
			d.active[i].Store(false)
		}()
	}
}

// burst submits tasks to a RayCluster without workers of group burst, and waits until these have come and gone.
func (d *demand) burst(ctx context.Context, i, tasks int, busy bool) {
	c := d.operator.clusters[clusterName(i)]
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begun := time.Now()
	if err := d.fleet.heads.do(order{Do: "submit", Cluster: i, Tasks: tasks}); err != nil {
		if ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	patched := c.until(limited, func(replicas int64, _ int) bool { return replicas > 0 })
	took := time.Since(begun)
	gone := patched && c.until(limited, func(replicas int64, pods int) bool { return replicas == 0 && pods == 0 })
	if ctx.Err() != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if patched {
		d.patched[busy] = append(d.patched[busy], took)
	}
	if !gone {
		d.late++
	}
}

// begin forgets what was measured so far.
func (d *demand) begin() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.patched, d.late = map[bool][]time.Duration{}, 0
}

// end returns what was measured since begin.
func (d *demand) end() (patched map[bool][]time.Duration, late int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return map[bool][]time.Duration{true: d.patched[true], false: d.patched[false]}, d.late
}
