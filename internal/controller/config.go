package controller

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
)

// Config holds the settings of the loop; DefaultConfig has those that nobody sets.
type Config struct {
	Form Form
	// DefaultMode applies to RayClusters without the annotation heliostat.dev/mode on themselves or on their
	// namespace. The default is shadow for a fleet, which scales nothing unasked, and managed for a sidecar, because
	// adding it to a head pod is a request to scale.
	DefaultMode nodepool.Mode
	// ReadOnly manages no RayCluster, whatever its annotation says, and does not write to ResourceRequests.
	ReadOnly bool
	// Policy is the planner's policy. Its MaxInFlight is finite, because one call of a driver can ask for any number of
	// pods.
	Policy planner.Policy

	// FastPoll is the shortest pause between two readings while anything moves, such as demand, pods on their way and
	// drains, and for 30 s after a change.
	FastPoll time.Duration
	// RestPoll is the shortest pause while nothing moves.
	RestPoll time.Duration
	// ReadsPerSecond bounds the readings of all clusters together, CyclesPerSecond those after which a decision is made
	// anew; see pace.go.
	ReadsPerSecond, CyclesPerSecond float64
	// GCSTimeout bounds each call to a head.
	GCSTimeout time.Duration
	// GCSBackoff is the longest pause between two calls to a head that does not answer.
	GCSBackoff time.Duration

	// AllocationTimeout is how long a pod may take to join Ray before its group counts as failing. A fifth of it is how
	// long a pod may have no node, without a node autoscaler announcing one, before that proves that its group is out
	// of stock. That counts only if Events of node autoscalers are read and one has reported before. The Cluster
	// Autoscaler takes up to 60 s in a big cluster (docs/reference/facts.md#how-soon-node-autoscalers-act).
	AllocationTimeout time.Duration
	// BreakerCooldown is how long a failing group gets no launches at first; it doubles up to one hour.
	BreakerCooldown time.Duration

	// DrainDeadline is how long work on a worker above a lowered maximum may continue, and the deadline of a drain
	// because of a bad GPU.
	DrainDeadline time.Duration
	// DrainBadGPUs: workers with a bad GPU are drained.
	DrainBadGPUs bool
	// DrainTimeout is how long an accepted drain of an idle node may take to end the node.
	DrainTimeout time.Duration
	// DeadGrace is how long a pod may stay with a dead Ray node that nobody drained before it is deleted by name;
	// KubeRay itself replaces containers that end.
	DeadGrace time.Duration
	// Addons are the optional features, in the order in which they run.
	Addons []addon.Addon
	// GuardsPerSecond bounds what features write beside all RayClusters together, such as guards.
	GuardsPerSecond float64
	// MaxDataAge is the oldest reading that a reduction may use.
	MaxDataAge time.Duration
	// ReportEvery is the interval of equal reports to the GCS.
	ReportEvery time.Duration

	// Now returns the time, Jitter a number in [0, 1).
	Now    func() time.Time
	Jitter func() float64
	// Log gets one line per change.
	Log *slog.Logger
	// Owned receives the status of ResourceRequests; nil writes none.
	Owned OwnedRequests
	// Published is called with every decision after it is applied, Forgotten when a RayCluster with decisions is gone,
	// or another process decides about it from now on. Neither may block. Both may be nil.
	Published func(*addon.Decision)
	Forgotten func(nodepool.ClusterKey)
}

// DefaultConfig returns the settings of a fleet. The flags of `serve` have these defaults, and check what is set.
func DefaultConfig() Config {
	return Config{
		Form:              Fleet,
		Policy:            planner.Policy{MaxInFlight: 1000},
		FastPoll:          100 * time.Millisecond,
		RestPoll:          200 * time.Millisecond,
		ReadsPerSecond:    4000,
		CyclesPerSecond:   400,
		GCSTimeout:        3 * time.Second,
		GCSBackoff:        10 * time.Second,
		AllocationTimeout: 5 * time.Minute,
		BreakerCooldown:   5 * time.Minute,
		DrainDeadline:     10 * time.Minute,
		DrainTimeout:      time.Minute,
		DeadGrace:         30 * time.Second,
		GuardsPerSecond:   50,
		MaxDataAge:        10 * time.Second,
		ReportEvery:       5 * time.Second,
		Now:               time.Now,
		Jitter:            rand.Float64,
		Log:               slog.New(slog.DiscardHandler),
	}
}

// Kube is everything that the controller needs from Kubernetes.
type Kube interface {
	// Cluster reads a RayCluster and its pods from the caches; nodepool.ErrGone if it does not exist.
	Cluster(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error)
	// Fresh reads the same from the API server. The controller calls it before it takes anything away.
	Fresh(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error)
	// MayWrite reports whether this process may write to a RayCluster now. The controller calls it right before every
	// drain, because no API server guards drains.
	MayWrite(key nodepool.ClusterKey) bool
	// Apply writes one guarded patch and returns the cluster's new generation. After nodepool.ErrConflict and
	// nodepool.ErrReadOnly, observe again; after nodepool.ErrNotLeading, another process decides.
	Apply(ctx context.Context, change nodepool.Change) (generation int64, err error)
	// SyncNumGPUs writes numbers of GPUs into the spec, guarded in the same way. A *nodepool.SyncRefusal says that
	// they must not be written; other errors are those of Apply.
	SyncNumGPUs(ctx context.Context, change nodepool.NumGPUsChange) (generation int64, err error)
	// Event records a Kubernetes Event on the RayCluster. warning selects its type.
	Event(cluster nodepool.Cluster, warning bool, reason, message string)
	// OwnerEvent records it on the RayJob or RayService that owns the RayCluster.
	OwnerEvent(cluster nodepool.Cluster, warning bool, reason, message string)
}

// OwnedRequests writes the status of ResourceRequests.
type OwnedRequests interface {
	// Report queues the updates and does not block. An update that cannot be written is dropped; the next cycle finds
	// it missing and queues it again.
	Report(updates []nodepool.OwnedUpdate)
}

// current is Kube without reservations by give-back that are over: by the clock, or because their taker is gone, off or
// in shadow mode.
type current struct {
	Kube
	now       func() time.Time
	effective func(nodepool.Cluster) (nodepool.Mode, planner.Reason)
}

func (k current) end(ctx context.Context, cluster *nodepool.Cluster) {
	if r := cluster.GiveBack; r != nil && (r.Over(k.now()) || k.without(ctx, r.Taker)) {
		cluster.EndGiveBack()
	}
}

// without reports whether a taker, as namespace/name, is gone, or somebody chose that it launches nothing. An obstacle
// that keeps it in shadow mode may pass.
func (k current) without(ctx context.Context, taker string) bool {
	namespace, name, named := strings.Cut(taker, "/")
	if !named {
		return false
	}
	cluster, err := k.Kube.Cluster(ctx, nodepool.ClusterKey{Namespace: namespace, Name: name})
	if err != nil {
		return errors.Is(err, nodepool.ErrGone)
	}
	mode, why := k.effective(cluster)
	return mode == nodepool.Off ||
		mode == nodepool.Shadow && (why.Code == addon.AsAsked || why.Code == addon.NotAsked)
}

func (k current) Cluster(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error) {
	cluster, err := k.Kube.Cluster(ctx, key)
	k.end(ctx, &cluster)
	return cluster, err
}

func (k current) Fresh(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error) {
	cluster, err := k.Kube.Fresh(ctx, key)
	k.end(ctx, &cluster)
	return cluster, err
}
