// Package addon is what the loop and its optional features know of each other: the Cycle, the head of a Ray cluster,
// and the Decision with its Actions and Events, which others see of a cycle. A feature is one folder below this one and
// one row where serve is assembled (cmd/autoscaler/engine/addons.go); without both, the loop does the same without the
// feature. Features do not know each other.
package addon

import (
	"context"
	"log/slog"
	"time"

	"heliostat.dev/heliostat/internal/controller/observe"
	"heliostat.dev/heliostat/internal/controller/scaledown"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Addon is an optional feature of the loop.
type Addon struct {
	// New returns the feature for one RayCluster. It may remember things; what must survive a restart is in the
	// Kubernetes API.
	New func(Loop) Feature
	// Forgotten is called for a RayCluster that is gone, or about which another process decides now. It may be nil.
	Forgotten func(key nodepool.ClusterKey)
}

// Feature is an Addon for one RayCluster. Any function may be nil. They are called one at a time, in the order of the
// fields, and each for all features in the order of their rows.
type Feature struct {
	// Forget forgets worker groups that are gone.
	Forget func(gone func(group string) bool)
	// Observe adds facts to the view before anything is decided. It does not fail: what it cannot read stays unknown.
	Observe func(ctx context.Context, v *observe.View)
	// Want returns what is to be kept free beside what work needs; nil for nothing.
	Want func(v *observe.View) *planner.Warm
	// Launch may let launches of an intent wait. It is called for each plan of a cycle, and the last one counts.
	Launch func(v *observe.View, i *Intent)
	// BeforeDrains, AfterDrains and Last are steps of a cycle (steps in internal/controller/apply.go). They run in all
	// modes, and after steps that failed, so each looks at the mode, Err and Withheld of the cycle itself.
	BeforeDrains, AfterDrains, Last func(ctx context.Context, c *Cycle)
}

// Loop is what a feature may use of the loop.
type Loop interface {
	Now() time.Time
	Log() *slog.Logger

	// Cluster reads the RayCluster from the caches, Fresh from the API server.
	Cluster(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error)
	Fresh(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error)
	// Effective returns what may be done with a RayCluster, and why.
	Effective(cluster nodepool.Cluster) (nodepool.Mode, planner.Reason)
	// MayWrite reports whether this process may write to the RayCluster now. Manages reports whether a later reading
	// still shows the same RayCluster as managed, and MayTakeAway whether the caches show that, and all requests for
	// it.
	MayWrite(key nodepool.ClusterKey) bool
	Manages(before, now nodepool.Cluster) bool
	MayTakeAway(ctx context.Context, before nodepool.Cluster) bool
	// WriteRound calls write for the first count changes until it reports false, as often as one cycle may write beside
	// the RayCluster, and not at all if the RayCluster is no longer as it was observed.
	WriteRound(ctx context.Context, c *Cycle, count int, write func(at int) bool)

	// Ray is the connection to the head; nil if there is none. Calls to it last CallTimeout at most.
	Ray() Ray
	CallTimeout() time.Duration
	// ReadRay reads Ray's state, and NodesNow the nodes of the view's Ray session.
	ReadRay(ctx context.Context, cluster nodepool.Cluster, now time.Time) (raydemand.State, error)
	NodesNow(ctx context.Context, v observe.View) ([]raydemand.Node, error)
	// Doubt returns why Ray's reading does not prove that a node is idle, Paused why nothing may be taken away, and
	// OperatorBehind why the operator has not yet carried out what the RayCluster says; "" for no reason.
	Doubt(v observe.View) string
	Paused(v observe.View) string
	OperatorBehind(v observe.View) string
	// Departing returns the drains of nodes that are about to lose their machine.
	Departing(v observe.View) []scaledown.DrainRequest
	// UsedFor returns for how long a node has shown the same use without interruption.
	UsedFor(node raydemand.NodeID) time.Duration
	// Settled reports whether Ray has shown what it placed on the node of a worker.
	Settled(worker observe.Member) bool

	// Plan plans for a view. Heavy reports whether a plan of the snapshot takes much time and memory.
	Plan(v observe.View) Intent
	Heavy(s *planner.Snapshot) bool
	// Drains are those that this process asked for. Drain asks for one more, and records the answer in the cycle.
	Drains() scaledown.Drains
	Drain(ctx context.Context, c *Cycle, w scaledown.DrainRequest) Action

	// Emit emits an Event, EmitOnce only when its condition begins.
	Emit(ctx context.Context, v observe.View, e Event)
	EmitOnce(ctx context.Context, v observe.View, e Event)
}
