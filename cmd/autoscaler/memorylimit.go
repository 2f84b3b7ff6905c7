package main

import (
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// calmMemory is up to where the Go runtime collects garbage rather than take more memory. What lives is a part of
	// it: a fleet of 100 RayClusters has 50 MiB, the requests of owners have the 64 MiB of --request-memory at most.
	calmMemory = 160 << 20
	// liveRoom is how much more than what lives the runtime may take beyond that, so that it does not collect all the
	// time.
	liveRoom = 1.4
	// limitPart is the part of the container's memory that the runtime may take; the rest is for what it does not
	// manage.
	limitPart = 0.9
	// memoryPause separates two looks at how much lives.
	memoryPause = time.Second
)

// keepMemory bounds the memory of the Go runtime until stop is called, unless GOMEMLIMIT is set: by the container's
// limit, and below that by the size of the live heap. Without a bound, garbage alone may take several times as much as
// live objects when large objects come fast. stop waits until the bound is no longer adjusted.
func keepMemory(log *slog.Logger) (stop func()) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	container := containerMemory("/proc/self/cgroup", "/sys/fs/cgroup")
	if container < math.MaxInt64 {
		log.Info("applying the memory limit of the container", "limitBytes", container, "runtimeBytes",
			int64(limitPart*float64(container)))
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	ctx, cancel := context.WithCancel(context.Background())
	var keeping sync.WaitGroup
	keeping.Go(func() {
		for {
			metrics.Read(live)
			debug.SetMemoryLimit(runtimeMemory(live[0].Value.Uint64(), container))
			select {
			case <-ctx.Done():
				return
			case <-time.After(memoryPause):
			}
		}
	})
	return func() {
		cancel()
		keeping.Wait()
	}
}

// runtimeMemory is what the runtime may take while so much lives, in a container of so much.
func runtimeMemory(live uint64, container int64) int64 {
	wanted := max(calmMemory, int64(liveRoom*float64(live)))
	if container == math.MaxInt64 {
		return wanted
	}
	return min(wanted, int64(limitPart*float64(container)))
}

// containerMemory is the lowest memory limit of this process's cgroup and those above it, of version 1 or 2, in bytes;
// math.MaxInt64 is none. Inside a container the path that the kernel tells may be another than the one that is mounted,
// whose root then has the limit.
func containerMemory(self, root string) int64 {
	text, err := os.ReadFile(self)
	if err != nil {
		return math.MaxInt64 // no Linux
	}
	limit := int64(math.MaxInt64)
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		switch fields[1] {
		case "memory":
			limit = min(limit, lowestLimit(filepath.Join(root, "memory"), fields[2], "memory.limit_in_bytes"))
		case "":
			limit = min(limit, lowestLimit(root, fields[2], "memory.max"))
		}
	}
	return limit
}

// lowestLimit reads the limits of a cgroup and of all above it.
func lowestLimit(root, path, file string) int64 {
	lowest := int64(math.MaxInt64)
	for path = filepath.Clean("/" + path); ; path = filepath.Dir(path) {
		text, err := os.ReadFile(filepath.Join(root, path, file))
		limit, wrong := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && wrong == nil && limit > 0 && limit < 1<<60 { // beyond, version 1 says that there is none
			lowest = min(lowest, limit)
		}
		if path == "/" {
			return lowest
		}
	}
}
