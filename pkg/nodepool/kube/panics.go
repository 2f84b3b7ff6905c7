package kube

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// CyclePanicked says that a cycle of this RayCluster ended in a panic and is repeated with growing pauses.
const CyclePanicked = "cycle-panicked"

// panics remembers of which RayCluster the last cycle panicked, so that its findings tell.
type panics struct {
	log *slog.Logger

	mu    sync.Mutex
	byKey map[nodepool.ClusterKey]string // guarded by mu
}

func newPanics(log *slog.Logger) *panics {
	return &panics{log: log, byKey: map[nodepool.ClusterKey]string{}}
}

// Panic is what a Reconcile panics with to name the context that the cycle ran in, which names its trace. Cause is
// what the cycle panicked with.
type Panic struct {
	Context context.Context
	Cause   any
}

// record takes what a cycle panicked with, or nil when it did not.
func (p *panics) record(key nodepool.ClusterKey, cause any) {
	if cause == nil {
		p.drop(key)
		return
	}
	ctx := context.Background()
	if in, named := cause.(Panic); named {
		ctx, cause = in.Context, in.Cause
	}
	p.log.ErrorContext(ctx, "cycle panicked", "cluster", key.String(), "cause", fmt.Sprint(cause), "stack", string(debug.Stack()))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byKey[key] = fmt.Sprint(cause)
}

func (p *panics) drop(key nodepool.ClusterKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, key)
}

// addTo appends the finding to a cluster that was just read.
func (p *panics) addTo(cluster *nodepool.Cluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cause, died := p.byKey[cluster.Key]; died {
		cluster.Findings = append(cluster.Findings, raydemand.Finding{
			Code: CyclePanicked, Severity: raydemand.Error, Object: "RayCluster " + cluster.Key.String(), Seen: cause,
			Why: "its last cycle ended in a panic; it is repeated with growing pauses, and other RayClusters are not touched by it",
			Fix: "report it with the stack in the log",
		})
	}
}
