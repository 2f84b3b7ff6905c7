package engine

import (
	"context"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// calmMemory is the size up to which the Go runtime collects garbage instead of taking more memory, in bytes. It
	// includes live objects: a fleet of 100 RayClusters has 50 MiB, and 2,000 of the largest ResourceRequests 40 MiB.
	calmMemory = 160 << 20
	// liveRoom is how much the runtime may take beyond live memory, as a part of it, so that it does not collect all
	// the time. It may take as much again as is live up to cheapRoom: with less, a fleet of 1,000 RayClusters spent
	// half of its CPU time on collecting.
	liveRoom  = 0.6
	cheapRoom = 192 << 20
	// limitPart is the part of the container's memory that the runtime may take; the rest is for memory that it does
	// not manage.
	limitPart = 0.9
	// memoryPause is the interval between readings of the live memory.
	memoryPause = time.Second
)

// keepMemory limits the memory of the Go runtime until stop is called, unless GOMEMLIMIT is set: by the container's
// limit, and below that by the size of the live heap. Without a limit, garbage alone can take several times as much as
// live objects if large objects are allocated quickly. Keep logs the container's limit, if there is one. stop waits
// until the limit is no longer adjusted.
func keepMemory(log *slog.Logger) (stop func()) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	container := containerMemory("/sys/fs/cgroup/memory.max")
	if container < math.MaxInt64 {
		log.Info("applying the memory limit of the container", "limitBytes", container, "runtimeBytes",
			int64(limitPart*float64(container)))
	}
	used := usedMemory()
	ctx, cancel := context.WithCancel(context.Background())
	var keeping sync.WaitGroup
	keeping.Go(func() {
		for {
			live, beside := used()
			debug.SetMemoryLimit(runtimeMemory(live, beside, container))
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

// usedMemory returns a function that reads how much is live on the heap, and what the runtime uses beside the heap: the
// stacks of goroutines, of which each RayCluster has several, and its own records. Both are in bytes.
func usedMemory() func() (live, beside uint64) {
	names := []string{"/gc/heap/live:bytes", "/memory/classes/total:bytes", "/memory/classes/heap/objects:bytes",
		"/memory/classes/heap/unused:bytes", "/memory/classes/heap/free:bytes", "/memory/classes/heap/released:bytes"}
	samples := make([]metrics.Sample, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	return func() (live, beside uint64) {
		metrics.Read(samples)
		beside = samples[1].Value.Uint64()
		for _, heap := range samples[2:] {
			beside -= min(beside, heap.Value.Uint64())
		}
		return samples[0].Value.Uint64(), beside
	}
}

// runtimeMemory returns the limit for so much live memory, and so much beside the heap, in a container with that limit.
func runtimeMemory(live, beside uint64, container int64) int64 {
	room := max(int64(liveRoom*float64(live)), min(int64(live), cheapRoom))
	wanted := max(calmMemory, int64(live)+room+int64(beside))
	if container == math.MaxInt64 {
		return wanted
	}
	return min(wanted, int64(limitPart*float64(container)))
}

// containerMemory returns the memory limit of this container, in bytes, as cgroups of version 2 show it;
// math.MaxInt64 means none.
func containerMemory(file string) int64 {
	text, err := os.ReadFile(file)
	limit, wrong := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || wrong != nil || limit <= 0 { // no container, or max
		return math.MaxInt64
	}
	return limit
}
