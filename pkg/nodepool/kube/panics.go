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

// CyclePanicked says that a cycle of this RayCluster panicked, and is retried with growing pauses.
const CyclePanicked = "cycle-panicked"

// panics remembers the RayClusters whose last cycle panicked, for their findings.
type panics struct {
	log *slog.Logger

	mu    sync.Mutex
	byKey map[nodepool.ClusterKey]string // guarded by mu
}

func newPanics(log *slog.Logger) *panics {
	return &panics{log: log, byKey: map[nodepool.ClusterKey]string{}}
}

// Panic is what a Reconcile panics with to pass on the context of the cycle, which names its trace. Cause is the
// original panic.
type Panic struct {
	Context context.Context
	Cause   any
}

// record takes what a cycle panicked with, or nil if it did not.
func (p *panics) record(key nodepool.ClusterKey, cause any) {
	if cause == nil {
		p.drop(key)
		return
	}
	ctx := context.Background()
	if in, named := cause.(Panic); named {
		ctx, cause = in.Context, in.Cause
	}
	p.log.ErrorContext(ctx, "cycle panicked", "cluster", key.String(), "cause", fmt.Sprint(cause), "stack",
		string(debug.Stack()))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byKey[key] = fmt.Sprint(cause)
}

func (p *panics) drop(key nodepool.ClusterKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, key)
}

// addTo adds the finding to a cluster.
func (p *panics) addTo(cluster *nodepool.Cluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cause, died := p.byKey[cluster.Key]; died {
		cluster.Findings = append(cluster.Findings, raydemand.Finding{
			Code: CyclePanicked, Severity: raydemand.Error, Object: "RayCluster " + cluster.Key.String(), Seen: cause,
			Why: "its last cycle panicked; it is retried with growing pauses, and other RayClusters are not affected",
			Fix: "report it with the stack in the log",
		})
	}
}
