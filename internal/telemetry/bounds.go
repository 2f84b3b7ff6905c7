package telemetry

import (
	"maps"
	"sync"
)

// Bounds knows how much of each bound of what the process keeps is in use. The zero value knows of none. It is safe for
// concurrent use.
type Bounds struct {
	mu    sync.Mutex // protects parts
	parts []func() map[string]float64
}

// Add adds a part of the process. used returns how much of each of its bounds is in use: 0 is nothing, and 1 is all.
func (b *Bounds) Add(used func() map[string]float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts = append(b.parts, used)
}

// Used returns how much of each bound of all parts is in use.
func (b *Bounds) Used() map[string]float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]float64{}
	for _, used := range b.parts {
		maps.Copy(all, used())
	}
	return all
}
