package landing

import (
	"maps"

	"heliostat.dev/heliostat/pkg/raydemand"
)

// Add adds in place, and creates the sums if there are none yet.
func (q Quantities) Add(more Quantities) Quantities {
	if q == nil && len(more) > 0 {
		q = make(Quantities, len(more))
	}
	for name, amount := range more {
		q[name] = q[name].Plus(amount)
	}
	return q
}

// Plus returns the sum of both.
func (q Quantities) Plus(more Quantities) Quantities { return maps.Clone(q).Add(more) }

// Quantities are amounts of Kubernetes resources by their exact names: cpu, memory in bytes, nvidia.com/mig-1g.10gb.
type Quantities map[string]raydemand.Amount

// WholeUnits returns the whole units in an amount.
func WholeUnits(amount raydemand.Amount) int64 { return int64(amount / raydemand.One) }

// take subtracts n pods with these requests from what a node has left, in place.
func (q Quantities) take(requests Quantities, n int64) {
	for name, want := range requests {
		if have, known := q[name]; known {
			q[name] = max(have-want.Times(n), 0)
		}
	}
	if have, known := q["pods"]; known {
		q["pods"] = max(have-raydemand.Whole(n), 0)
	}
}
