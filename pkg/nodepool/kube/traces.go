package kube

import (
	"context"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/rayobject"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Traces stores traces in annotations. Either function may be nil, and stores nothing by returning "".
type Traces struct {
	// Call returns the traceparent of a call that requests resources.
	Call func(context.Context) string
	// ScaleUp returns what to store about a patch that makes worker groups larger at that time.
	ScaleUp func(ctx context.Context, at time.Time) string
}

// Kept returns the stored trace of the last call that requested resources for a RayCluster, when that was, and the
// trace of its last scale-up; empty if there is none.
func (m *Manager) Kept(key nodepool.ClusterKey) (call string, calledAt time.Time, scaleUp string) {
	object, err := m.newest(key)
	if err != nil {
		return "", time.Time{}, ""
	}
	metadata := rayobject.FieldsOf(object.Object, nil).Object("metadata")
	annotations := metadata.Object("annotations")
	call, scaleUp = annotations.Text(
		rayobject.RequestTraceAnnotation,
	), annotations.Text(
		rayobject.ScaleUpTraceAnnotation,
	)
	if call != "" {
		calledAt, _ = time.Parse(time.RFC3339, annotations.Text(rayobject.RequestedSinceAnnotation))
	}
	if m.requests == nil {
		return call, calledAt, scaleUp
	}
	for _, request := range m.requests.Of(key) {
		owned, moment, _ := strings.Cut(request.Trace, " ")
		if at, err := time.Parse(time.RFC3339, moment); err == nil && at.After(calledAt) {
			call, calledAt = owned, at
		}
	}
	return call, calledAt, scaleUp
}

// scaleUpOf returns the trace that a change stores.
func (m *Manager) scaleUpOf(ctx context.Context, change nodepool.Change) string {
	grows := slices.ContainsFunc(change.Targets, func(t nodepool.Target) bool { return t.Replicas > t.From })
	if !grows || m.options.Traces.ScaleUp == nil {
		return ""
	}
	return m.options.Traces.ScaleUp(ctx, time.Now())
}

// withTrace adds the trace of the call that requests resources to the annotations. Without requests it removes the
// trace.
func (m *Manager) withTrace(
	ctx context.Context,
	annotations map[string]any,
	requests []raydemand.Request,
) map[string]any {
	annotations[rayobject.RequestTraceAnnotation] = nil
	if call := m.options.Traces.Call; call != nil && len(requests) > 0 {
		if trace := call(ctx); trace != "" {
			annotations[rayobject.RequestTraceAnnotation] = trace
		}
	}
	return annotations
}
