package reflector

import (
	"context"
	"math/rand/v2"
	"time"
)

// DefaultPoll is short enough that a freeze stops writes within a second even if a RayCluster cannot be watched.
const DefaultPoll = 500 * time.Millisecond

// jitterShare spreads times by ±10 %, so that the cycles of many clusters do not coincide.
const jitterShare = 0.1

// Sleep waits, and reports false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Jittered returns a duration that differs from d by up to jitterShare.
func Jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 - jitterShare + 2*jitterShare*rand.Float64()))
}

// RequestTimeout bounds a single read or write; the next cycle retries one that hangs.
const RequestTimeout = 5 * time.Second
