package costs

import (
	"sync"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/pkg/nodepool/price"
)

// Costs adds up what the workers of published decisions cost.
type Costs struct {
	Ledger *ledger.Ledger
	book   *price.Book
	// parts are buffers for one observation.
	parts sync.Pool
}

// New returns Costs with the prices of nodes.
func New(book *price.Book) *Costs {
	return &Costs{Ledger: ledger.New(ledger.Limits{}), book: book,
		parts: sync.Pool{New: func() any { return new([]ledger.Pod) }}}
}

// Observe adds up a decision. One that did not see the RayCluster adds nothing: the one before it holds meanwhile.
func (c *Costs) Observe(d *addon.Decision) {
	if d.ObserveFailed {
		return
	}
	parts := c.parts.Get().(*[]ledger.Pod)
	defer c.parts.Put(parts)
	*parts = Of((*parts)[:0], d, c.book)
	c.Ledger.Observe(ledger.Observation{At: d.At, Cluster: d.Cluster, Pods: *parts})
	clear(*parts) // the buffer must not keep the names of pods' groups alive
}
