package addon

import (
	"sync/atomic"
	"time"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Decision is the result of one cycle, published for REST, the web page and metrics. It does not change afterwards, but
// for Read and Pods: readings that change nothing keep the decision, renew the age of its data, and drop its pods.
type Decision struct {
	Cluster nodepool.ClusterKey
	UID     string
	// At is when the cycle began, Took how long it lasted, calls included.
	At   time.Time
	Took time.Duration
	// Parts of Took: Observed is how long reading took, Planned how long planning did. The rest was spent on actions.
	Observed, Planned time.Duration
	// ObserveFailed: the RayCluster could not be read, so everything but Err and Next is from the decision before.
	ObserveFailed bool
	// Mode is what Heliostat may do with the cluster now, Why is the reason.
	Mode nodepool.Mode
	Why  planner.Reason
	// Session is Ray's session, empty while Ray does not answer.
	Session string

	// Kube is the RayCluster as of this decision, without its Workers, which are in Pods.
	Kube nodepool.Cluster
	// Pods are the worker pods, which only publishing the decision needs. They are most of what it takes, so there are
	// none after it has stood for a reading.
	Pods     *Latest[[]nodepool.Worker]
	Snapshot planner.Snapshot
	Plan     planner.Plan
	Findings []raydemand.Finding

	// Read is when the GCS last answered with what this decision rests on; RayErr is why it did not in this cycle.
	Read   *Latest[time.Time]
	RayErr string
	// Paused is why nothing is taken away at present, or empty.
	Paused string
	// Idle is what happens to the RayCluster without work and when, or what prevents it; empty if nothing is to happen.
	Idle string
	// Awaits counts pods by group that are not launched yet and for which others make room.
	Awaits map[string]int64
	// WarmNodes is what becomes of the nodes that the capacity policy wants.
	WarmNodes []capacity.NodesPlan
	// Unwritten is why the last patch failed; empty after one succeeds or when there is nothing to write.
	Unwritten string
	// Err is the error of observing or applying.
	Err string

	// Actions are those of this cycle, Recent the latest of all cycles, oldest first.
	Actions []Action
	Recent  []Action
	// SeenToPatched is the time from growth first wanted to patched, in the cycle that patched it.
	SeenToPatched time.Duration
	// Next is the pause until the next reading.
	Next time.Duration
	// Reverted: another field manager changed replicas since this process wrote them.
	Reverted bool
	// NumGPUs is the number of GPUs of a worker, by group.
	NumGPUs map[string]GroupNumGPUs
	// OptIn is what Heliostat would do if it managed the RayCluster; nil if it does.
	OptIn *apiv1.OptIn
}

// ReadAt is when the GCS last answered with the data of this decision; zero if it never did.
func (d *Decision) ReadAt() time.Time { return d.Read.Get() }

// Age returns how old the Ray data is at now; negative if there is none.
func (d *Decision) Age(now time.Time) time.Duration {
	at := d.ReadAt()
	if at.IsZero() {
		return -1
	}
	return now.Sub(at)
}

// Latest is a value that readings replace while a decision stands. It is safe for concurrent use. The value of a nil
// Latest is zero.
type Latest[T any] struct{ value atomic.Pointer[T] }

// LatestOf returns a Latest with a value, which must not be changed.
func LatestOf[T any](value T) *Latest[T] {
	l := &Latest[T]{}
	l.Set(value)
	return l
}

// Set replaces the value.
func (l *Latest[T]) Set(value T) { l.value.Store(&value) }

// Get returns the value.
func (l *Latest[T]) Get() (value T) {
	if l != nil && l.value.Load() != nil {
		value = *l.value.Load()
	}
	return value
}

// The kinds of actions.
const (
	ActionPatch  = "patch"
	ActionDrain  = "drain"
	ActionReport = "report"
	// ActionSync writes the number of GPUs that the pods of a group announce; From and To are GPUs.
	ActionSync = "sync"
	// ActionGuard adds or removes the annotations of a pod that keep node autoscalers from evicting it.
	ActionGuard = "guard"
	// ActionProvision writes or deletes a ProvisioningRequest, or annotates a pod that uses one.
	ActionProvision = "provision"
	// ActionNodes writes or removes a CapacityBuffer with its PodTemplate.
	ActionNodes = "nodes"
	// ActionIdle suspends a RayCluster without work, or resumes it.
	ActionIdle = "idle"
)

// The results of actions.
const (
	ResultOK       = "ok"
	ResultRefused  = "refused"
	ResultConflict = "conflict"
	ResultError    = "error"
)

// Action is one thing that was done or tried.
type Action struct {
	At     time.Time
	Kind   string
	Result string
	Group  string
	// From and To are replicas for a patch.
	From, To int
	// Pods are the pods that leave: drained, or named in workersToDelete.
	Pods    []string
	Message string
	Took    time.Duration
	// Reason is the code of the reason; empty if the plan has it.
	Reason string
}

// ScalesNothing reports whether the action only sends a report to Ray or annotates a pod. There are many of these.
func (a Action) ScalesNothing() bool {
	return a.Kind == ActionReport || a.Kind == ActionGuard || a.Kind == ActionProvision
}

// Name returns the name of the action in metrics and the API.
func (a Action) Name() string {
	switch {
	case a.Result != ResultOK:
		return a.Kind + "-" + a.Result
	case a.Kind == ActionDrain:
		return "drain"
	case a.Kind == ActionSync:
		return "num-gpus"
	case a.Kind == ActionIdle, a.Kind == ActionNodes:
		return a.Kind
	case a.To > a.From:
		return "scale-up"
	case a.To < a.From:
		return "scale-down"
	case len(a.Pods) > 0:
		return "replace"
	}
	return "clear"
}

// GroupNumGPUs is the number of GPUs of a worker of one group according to each source, and the result of a
// difference.
type GroupNumGPUs struct {
	nodepool.NumGPUs
	// Mode says when the reported number may be written into the spec.
	Mode nodepool.SyncMode
	// Code and Why say why it is not written; both are empty if there is nothing to write or it was written.
	Code, Why string
	// IfManaged: it would be written if the RayCluster were managed.
	IfManaged bool
}

// Event is one Event on a RayCluster.
type Event struct {
	// Warning selects the type Warning; the other type is Normal.
	Warning         bool
	Reason, Message string
	// Owner: the RayJob or RayService that owns the RayCluster gets the Event too.
	Owner bool
}
