package timing

import (
	"context"
	"math/rand/v2"
	"time"
)

// DefaultPoll keeps freeze's promise, no writes within a second, where a RayCluster cannot be watched.
const DefaultPoll = 500 * time.Millisecond

// jitterShare spreads due times by ±10 %, so that the cycles of many clusters do not fall together.
const jitterShare = 0.1

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

func Jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 - jitterShare + 2*jitterShare*rand.Float64()))
}

// RequestTimeout bounds a single read or write: what hangs longer is asked again by the next cycle.
const RequestTimeout = 5 * time.Second
