package devcluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"heliostat.dev/heliostat/test/devcluster/kit"
)

// enterRayStart waits until fewer Ray nodes start on this machine than it has cores, counting those of other clusters.
// A raylet gives up when its agents, which are Python, do not start within half a minute; with as many starts as cores
// each takes a few seconds. The kernel drops the lock of a process that ends.
func (c *Cluster) enterRayStart(ctx context.Context) (done func(), err error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	for {
		for n := range max(runtime.NumCPU(), 2) {
			lock, err := kit.TryLock(filepath.Join(RunDir(cache), fmt.Sprintf(".ray-start-%d.lock", n)))
			if err == nil {
				return lock.Release, nil
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
