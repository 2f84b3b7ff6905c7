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
	slow := filepath.Join(RunDir(cache), ".ray-start-slow")
	for {
		places := max(runtime.GOMAXPROCS(0), 2) // a container's CPU quota counts
		if _, err := os.Stat(slow); err == nil {
			places = 1
		}
		for n := range places {
			lock, err := kit.TryLock(filepath.Join(RunDir(cache), fmt.Sprintf(".ray-start-%d.lock", n)))
			if err == nil {
				began := time.Now()
				return func() {
					noteRayStart(slow, time.Since(began))
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

// noteRayStart creates or removes the file that says that the last start was slow. Without it, nodes start as before.
func noteRayStart(slow string, took time.Duration) {
	if took < slowRayStart {
		_ = os.Remove(slow)
	} else {
		_ = os.WriteFile(slow, nil, 0o644)
	}
}
