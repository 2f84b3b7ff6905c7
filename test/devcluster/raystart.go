package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"heliostat.dev/heliostat/test/devcluster/kit"
)

// slowRayStart is how long a Ray node may take to start until the next one starts alone. With as many starts as cores,
// each takes 10 s, and a head on a cold machine 18 s. Ray gives up after 30 s, in `ray start` (ray/_private/node.py,
// raylet_start_wait_time_s) and in the raylet, which waits for its agents.
const slowRayStart = 20 * time.Second

// enterRayStart waits until fewer Ray nodes start on this machine than it has cores, counting those of other clusters.
// After a slow start, the next node starts alone: on a machine that others keep busy, several that start at once all
// give up, and do so again each time that their containers restart. The kernel drops the lock of a process that ends.
func enterRayStart(ctx context.Context) (done func(), err error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	return rayStarts(RunDir(cache)).enter(ctx)
}

// rayStarts is the directory that says which Ray nodes start, and whether the last one that did was slow.
type rayStarts string

func (d rayStarts) enter(ctx context.Context) (done func(), err error) {
	for {
		places := max(runtime.GOMAXPROCS(0), 2) // a container's CPU quota counts
		if d.slow() {
			places = 1
		}
		for n := range places {
			lock, err := kit.TryLock(filepath.Join(string(d), fmt.Sprintf(".ray-start-%d.lock", n)))
			if err == nil {
				began := time.Now()
				return func() {
					d.took(time.Since(began))
					lock.Release()
				}, nil
			}
			if !errors.Is(err, kit.ErrLocked) {
				return nil, fmt.Errorf("waiting for other Ray nodes to start: %w", err)
			}
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func (d rayStarts) slow() bool {
	_, err := os.Stat(d.slowFile())
	return err == nil
}

// took notes how long a start took. If it cannot, nodes start as before.
func (d rayStarts) took(t time.Duration) {
	if t < slowRayStart {
		_ = os.Remove(d.slowFile())
	} else {
		_ = os.WriteFile(d.slowFile(), nil, 0o644)
	}
}

func (d rayStarts) slowFile() string { return filepath.Join(string(d), ".ray-start-slow") }
