package telemetry

import (
	"maps"
	"time"
)

// idleHours adds up the GPU-hours of one cluster that nothing used, by cause.
type idleHours struct {
	hours map[string]float64
	// gpus is the number of idle GPUs by cause since the last cycle, which was at since.
	gpus  map[string]float64
	since time.Time
}

// longestIdle limits the idle time that one interval between two cycles adds: it is longer than any decision stands,
// and there is no data for a longer one.
const longestIdle = 3 * time.Minute

// observe adds the idle time since the previous cycle. A cause is known from the cycle that sees it first, with no
// hours, so that a rate counts its first ones.
func (h *idleHours) observe(c Cycle) {
	if h.hours == nil {
		h.hours = map[string]float64{}
	}
	passed := min(max(c.At.Sub(h.since), 0), longestIdle).Hours()
	for cause, gpus := range h.gpus {
		h.hours[cause] += gpus * passed
	}
	h.gpus, h.since = c.IdleGPUs, c.At
	if c.RayFailed {
		h.gpus = nil
	}
	for cause := range h.gpus {
		h.hours[cause] += 0
	}
}

// copied returns the hours by cause.
func (h *idleHours) copied() map[string]float64 { return maps.Clone(h.hours) }
