package simray

import "heliostat.dev/heliostat/pkg/raydemand"

// Version is a Ray release whose wire a Head speaks.
type Version string

// The releases whose answers were recorded.
const (
	Ray240 Version = "2.40.0"
	Ray252 Version = "2.52.0"
	Ray260 Version = "2.60.0"
)

// hasLabels: nodes carry labels in the state, requests selectors and gangs bundle_selectors (since about 2.49).
func (v Version) hasLabels() bool { return v != Ray240 }

// hasTokens: RAY_AUTH_MODE=token is honoured; before, the header is ignored.
func (v Version) hasTokens() bool { return v != Ray240 }

// wireSelectors are the selectors that this release sends of a task: none, the primary one, or all fallbacks too.
func (v Version) wireSelectors(all []raydemand.Selector) []raydemand.Selector {
	switch {
	case !v.hasLabels():
		return nil
	case len(all) == 0:
		return []raydemand.Selector{nil}
	case v == Ray252:
		return all[:1]
	}
	return all
}

// writesKVBeside: request_resources() on a v2 head writes the KV key as well as the constraint.
func (v Version) writesKVBeside() bool { return v != Ray260 }

// kvObjects: elements of the KV key are objects of resources and label_selector.
func (v Version) kvObjects() bool { return v == Ray252 }

// unreachable is the code name with which a drain ends when the raylet dies of it.
func (v Version) unreachable() (name, text string) {
	if v == Ray240 {
		return "RpcError", "RPC Error message: Socket closed; RPC Error details:"
	}
	return "Disconnected", "GRPC client is shut down."
}
