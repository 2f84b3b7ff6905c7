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

const (
	// slowRayStart is how long a Ray node may take to start until others start alone. With as many starts as cores,
	// each takes 10 s, and a head on a cold machine 18 s. Ray gives up after 30 s, in `ray start` (in its node.py,
	// raylet_start_wait_time_s) and in the raylet, which waits for its agents.
	slowRayStart = 25 * time.Second
	// slowFor is how long they start alone. Alone, each is fast again, but two would not be.
	slowFor = 5 * time.Minute
)

// enterRayStart waits until fewer Ray nodes start on this machine than it has cores, counting those of other clusters.
// After a slow start, nodes start one by one for a while: on a machine that others keep busy, several that start at
// once all give up, and do so again each time that their containers restart. The kernel drops the lock of a process
// that ends.
func enterRayStart(ctx context.Context) (done func(), err error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	return rayStarts(RunDir(cache)).enter(ctx)
}

// rayStarts is the directory that says how many Ray nodes start, and whether one was slow.
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
	file, err := os.Stat(d.slowFile())
	return err == nil && time.Since(file.ModTime()) < slowFor
}

// took notes how long a start took. If it cannot, nodes start as before.
func (d rayStarts) took(t time.Duration) {
	if t >= slowRayStart {
		_ = os.WriteFile(d.slowFile(), []byte(t.String()), 0o644)
	}
}

func (d rayStarts) slowFile() string { return filepath.Join(string(d), ".ray-start-slow") }
