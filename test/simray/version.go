package simray

import "heliostat.dev/heliostat/pkg/raydemand"

// Version is a release of Ray that a Head simulates.
type Version string

// The releases with recorded answers.
const (
	Ray240 Version = "2.40.0"
	Ray252 Version = "2.52.0"
	Ray260 Version = "2.60.0"
)

// hasLabels reports whether nodes have labels in the state, requests have selectors, and gangs have bundle_selectors
// (since about 2.49).
func (v Version) hasLabels() bool { return v != Ray240 }

// hasTokens reports whether the release supports RAY_AUTH_MODE=token. Older releases ignore the token header.
func (v Version) hasTokens() bool { return v != Ray240 }

// wireSelectors returns the selectors of a task that this release sends: none, only the first, or all.
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

// writesKVBeside reports whether request_resources() on a v2 head writes both the KV key and the constraint.
func (v Version) writesKVBeside() bool { return v != Ray260 }

// kvObjects reports whether the elements in the KV key are objects with resources and label_selector.
func (v Version) kvObjects() bool { return v == Ray252 }

// unreachable returns the code name and text of the error if the raylet dies during a drain.
func (v Version) unreachable() (name, text string) {
	if v == Ray240 {
		return "RpcError", "RPC Error message: Socket closed; RPC Error details:"
	}
	return "Disconnected", "GRPC client is shut down."
}
