package publish

import (
	"slices"
	"sync"
	"time"

	"heliostat.dev/heliostat/internal/controller/decision"
	"heliostat.dev/heliostat/internal/controller/spending"
	"heliostat.dev/heliostat/internal/ledger"
	"heliostat.dev/heliostat/internal/savings"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/price"
)

// Costs adds up what the workers of published decisions cost.
type Costs struct {
	Ledger *ledger.Ledger
	// History records how workers were used, for replays with other settings.
	History *savings.History
	book    *price.Book
	// parts are buffers for one observation.
	parts sync.Pool
}

// NewCosts returns Costs that begin at a moment.
func NewCosts(began time.Time, book *price.Book) *Costs {
	return &Costs{Ledger: ledger.New(began, ledger.Limits{}), History: savings.New(), book: book,
		parts: sync.Pool{New: func() any { return new([]ledger.Pod) }}}
}

// Observe adds up a decision. One that did not see the RayCluster adds nothing: the one before it holds meanwhile.
func (c *Costs) Observe(d *decision.Decision) {
	if d.ObserveFailed {
		return
	}
	parts := c.parts.Get().(*[]ledger.Pod)
	defer c.parts.Put(parts)
	*parts = spending.Of((*parts)[:0], d, c.book)
	c.Ledger.Observe(ledger.Observation{At: d.At, Cluster: d.Cluster, Pods: *parts})
	c.History.Observe(savings.Observation{At: d.At, Cluster: d.Cluster, Groups: d.Kube.Groups,
		IdleTimeout: d.Kube.IdleTimeout, Pods: *parts})
	clear(*parts) // the buffer must not keep the names of pods' groups alive
}

// Release drops a RayCluster about which another process decides.
func (c *Costs) Release(key nodepool.ClusterKey) {
	c.Ledger.Release(key)
	c.History.Forget(key)
}

// Forget ends a RayCluster that was deleted. What it has cost is kept, and what other settings would have cost is not.
func (c *Costs) Forget(key nodepool.ClusterKey, at time.Time) {
	c.Ledger.Forget(key, at)
	c.History.Forget(key)
}

// Metrics returns a function that returns what a RayCluster has spent since this process began, by cause.
func (c *Costs) Metrics(key nodepool.ClusterKey) func() []telemetry.Cost {
	return func() []telemetry.Cost {
		totals := c.Ledger.Totals(key)
		costs := make([]telemetry.Cost, 0, len(totals))
		for cause, a := range totals {
			costs = append(costs, telemetry.Cost{Cause: string(cause), Currency: c.book.Unit(),
				PodSeconds: a.PodSeconds, GPUSeconds: a.GPUSeconds, Money: a.Money})
		}
		slices.SortFunc(costs, func(a, b telemetry.Cost) int {
			return slices.Index(causes, a.Cause) - slices.Index(causes, b.Cause)
		})
		return costs
	}
}

// causes are all causes in their order.
var causes = func() (names []string) {
	for _, cause := range ledger.Causes() {
		names = append(names, string(cause))
	}
	return names
}()
