// Package decision holds the result of one cycle: what was seen, planned and done, for REST, the web page, metrics and
// the history. A Decision does not change after it is published. The package must not observe or apply anything.
package decision

import (
	"time"

	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Decision is one cycle's result, published for REST, the page and metrics. Nobody changes it after that.
type Decision struct {
	Cluster nodepool.ClusterKey
	UID     string
	// At is when the cycle began, Took how long it lasted, calls included.
	At   time.Time
	Took time.Duration
	// Observed and Planned are the parts of Took that reading both sides and the first plan took; the rest was spent carrying it out.
	Observed, Planned time.Duration
	// ObserveFailed: not even the RayCluster could be read, so all but Err and Next is the decision before.
	ObserveFailed bool
	// Mode is what Heliostat may do with the cluster now, Why says so in words.
	Mode nodepool.Mode
	Why  planner.Reason
	// Session is Ray's session, empty while Ray does not answer.
	Session string

	// Kube is the RayCluster and its pods as this decision saw them.
	Kube     nodepool.Cluster
	Snapshot planner.Snapshot
	Plan     planner.Plan
	Findings []raydemand.Finding

	// ReadAt is when the GCS last answered, zero if it never did; RayErr says why it did not in this cycle.
	ReadAt time.Time
	RayErr string
	// Paused says why nothing is taken away at present, or is empty.
	Paused string
	// Unwritten says why the last patch failed, until one succeeds or nothing is to be written; empty otherwise.
	Unwritten string
	// Err is what went wrong while observing or applying.
	Err string

	// Actions are this cycle's, Recent the latest of all, oldest first.
	Actions []Action
	Recent  []Action
	// SeenToPatched is how long growth took from first wanted to patched, when this cycle patched it.
	SeenToPatched time.Duration
	// GrowthWanted is since when the growth has been wanted that this cycle wants, patched or not; zero where it wants none.
	GrowthWanted time.Time
	// Next is the pause until the next reading.
	Next time.Duration
	// NumGPUs is how many GPUs a worker has, by group.
	NumGPUs map[string]GroupNumGPUs
	// OptIn is what Heliostat would do were it allowed to; nil for a RayCluster that is managed.
	OptIn *OptIn
}

// Age is how old the Ray data is at now; negative when there never was any.
func (d *Decision) Age(now time.Time) time.Duration {
	if d.ReadAt.IsZero() {
		return -1
	}
	return now.Sub(d.ReadAt)
}

// The kinds of actions.
const (
	ActionPatch  = "patch"
	ActionDrain  = "drain"
	ActionReport = "report"
	// ActionSync writes how many GPUs the pods of a group announce; From and To are GPUs.
	ActionSync = "sync"
	// ActionClusterConfig reports to Ray which nodes the cluster could have.
	ActionClusterConfig = "config"
)

// The results of actions.
const (
	ResultOK       = "ok"
	ResultRefused  = "refused"
	ResultConflict = "conflict"
	ResultError    = "error"
)

// Action is one thing that was done, or tried.
type Action struct {
	At     time.Time
	Kind   string
	Result string
	Group  string
	// From and To are replicas for a patch.
	From, To int
	// Pods leave: they are drained, or named in workersToDelete.
	Pods    []string
	Message string
	Took    time.Duration
}

// ReportsOnly says whether the action only tells Ray something, and scales nothing.
func (a Action) ReportsOnly() bool { return a.Kind == ActionReport || a.Kind == ActionClusterConfig }

// GroupNumGPUs is how many GPUs a worker of one group has, by all who say so, and what becomes of a difference.
type GroupNumGPUs struct {
	nodepool.NumGPUs
	// Mode is when the reported number may be written into the spec.
	Mode nodepool.SyncMode
	// Code and Why say why it is not written; both are empty when there is nothing to write or it was written.
	Code, Why string
	// IfManaged: it would be written if the RayCluster were managed.
	IfManaged bool
}
