package engine

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"heliostat.dev/heliostat/api/proto/autoscalerpb"
	"heliostat.dev/heliostat/internal/addon"
	"heliostat.dev/heliostat/internal/controller"
	"heliostat.dev/heliostat/internal/telemetry"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
)

// stillKube returns one RayCluster that never changes, returns an error, or panics.
type stillKube struct {
	cluster nodepool.Cluster
	err     error
	panics  string
}

func (k *stillKube) Cluster(context.Context, nodepool.ClusterKey) (nodepool.Cluster, error) {
	if k.panics != "" {
		panic(k.panics)
	}
	return k.cluster, k.err
}
func (k *stillKube) Fresh(context.Context, nodepool.ClusterKey) (nodepool.Cluster, error) {
	return k.cluster, k.err
}
func (k *stillKube) MayWrite(nodepool.ClusterKey) bool                     { return true }
func (k *stillKube) Apply(context.Context, nodepool.Change) (int64, error) { return 1, nil }
func (k *stillKube) Event(nodepool.Cluster, bool, string, string)          {}
func (k *stillKube) OwnerEvent(nodepool.Cluster, bool, string, string)     {}
func (k *stillKube) Guard(context.Context, nodepool.GuardChange) error     { return nil }
func (k *stillKube) EndIdle(context.Context, nodepool.IdleChange) error    { return nil }

func (k *stillKube) KeepNodes(context.Context, nodepool.BufferChange) error { return nil }

func (k *stillKube) Provision(context.Context, nodepool.ProvisioningChange) error {
	return nil
}

func (k *stillKube) SyncNumGPUs(context.Context, nodepool.NumGPUsChange) (int64, error) {
	return 1, nil
}

// atRest returns a cluster of eight workers, and its head. If a token is given, the head requires it.
func atRest(t testing.TB, token string) (*stillKube, *rayHead) {
	t.Helper()
	ray := &rayHead{token: token, nodes: []*autoscalerpb.NodeState{idleNode(0, "llm-head", "headgroup", nil)}}
	resources := raydemand.Bundle{"CPU": raydemand.Whole(8), "GPU": raydemand.Whole(1)}
	cluster := nodepool.Cluster{
		Key: nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, UID: "uid-1", Generation: 1, ObservedGeneration: 1, Mode: nodepool.Managed,
		InTreeAutoscaling: true, IdleTimeout: time.Hour,
		Head:   nodepool.Head{Pod: "llm-head", PodUID: "head-uid", IP: "127.0.0.1", Ready: true},
		Groups: []nodepool.WorkerGroup{{Name: "gpu", Resources: resources, Replicas: 8, Min: 8, Max: 12, NumOfHosts: 1}},
	}
	for i, pod := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		cluster.Workers = append(cluster.Workers, nodepool.Worker{Pod: pod, UID: pod, Group: "gpu", Node: "node", Running: true, Ready: true})
		ray.nodes = append(ray.nodes, idleNode(i+1, pod, "gpu", map[string]float64{"CPU": 8, "GPU": 1}))
	}
	stop, err := ray.start(nil)
	must(t, err)
	t.Cleanup(stop)
	return &stillKube{cluster: cluster}, ray
}

func loopOf(t testing.TB, k *stillKube, ray *rayHead, log *slog.Logger, published func(*addon.Decision)) *controller.Controller {
	t.Helper()
	config := controller.DefaultConfig()
	config.CyclesPerSecond, config.Published = 1e6, published
	if log != nil {
		config.Log = log
	}
	loop := controller.New(k, func(context.Context, nodepool.Cluster) (addon.Ray, error) {
		return gcs.Dial(gcs.Config{Address: ray.addr})
	}, config)
	t.Cleanup(loop.Close)
	return loop
}

// toNobody starts telemetry with all features on, for a collector that does not exist.
func toNobody(t testing.TB) *telemetry.Telemetry {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1") // no process listens on this port
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "100")
	told, err := telemetry.Start(t.Context(), telemetry.Config{Registerer: prometheus.NewRegistry(), Getenv: os.Getenv})
	must(t, err)
	t.Cleanup(func() { told.Shutdown(context.Background()) })
	return told
}

func TestWhatACycleLogsNamesItsTrace(t *testing.T) {
	k, head := atRest(t, "")
	k.err = errors.New("forbidden")
	out := &records{}
	loop := loopOf(t, k, head, slog.New(out), nil)
	traced(loop, toNobody(t).Tracer)(t.Context(), k.cluster.Key, false)
	if len(out.traced) != 1 || !out.traced[0] {
		t.Errorf("records with a trace: %v, want one", out.traced)
	}
}

func TestAPanicOfACycleNamesItsTrace(t *testing.T) {
	k, head := atRest(t, "")
	k.panics = "index out of range"
	cycle := traced(loopOf(t, k, head, nil, nil), toNobody(t).Tracer)
	defer func() {
		got, named := recover().(kube.Panic)
		if !named || got.Cause != k.panics || !trace.SpanContextFromContext(got.Context).IsValid() {
			t.Errorf("the cycle panics with %+v, want %q in the context of its span", got, k.panics)
		}
		if stack := string(debug.Stack()); !strings.Contains(stack, "(*stillKube).Cluster") {
			t.Errorf("the stack does not show where the panic began: %s", stack)
		}
	}()
	cycle(t.Context(), k.cluster.Key, false)
}

// BenchmarkTelemetryOfACycleAtRest reports how much longer an idle cycle takes with metrics and traces. It alternates
// cycles with and without telemetry, and compares their medians.
func BenchmarkTelemetryOfACycleAtRest(b *testing.B) {
	k, head := atRest(b, "")
	told := toNobody(b)
	plain := loopOf(b, k, head, nil, nil)
	with := traced(loopOf(b, k, head, nil, func(d *addon.Decision) { told.Observe(d, nil, "") }), told.Tracer)
	var without, telling []time.Duration
	timed := func(cycle func()) time.Duration {
		begun := time.Now()
		cycle()
		return time.Since(begun)
	}
	for b.Loop() {
		without, telling = append(without, timed(func() { plain.Cycle(b.Context(), k.cluster.Key) })),
			append(telling, timed(func() { with(b.Context(), k.cluster.Key, false) }))
	}
	slices.Sort(without)
	slices.Sort(telling)
	before, after := without[len(without)/2], telling[len(telling)/2]
	b.ReportMetric(float64(before.Nanoseconds()), "ns/plain")
	b.ReportMetric(float64(after.Nanoseconds()), "ns/told")
	b.ReportMetric(100*(float64(after)/float64(before)-1), "%more")
}

// records stores for each log record whether its context has a span.
type records struct{ traced []bool }

func (r *records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *records) WithGroup(string) slog.Handler            { return r }
func (r *records) Handle(ctx context.Context, _ slog.Record) error {
	r.traced = append(r.traced, trace.SpanContextFromContext(ctx).IsValid())
	return nil
}

func TestOnlyCyclesThatDidSomethingOrFailedAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*addon.Decision)
		want   bool
	}{
		"at rest":                   {func(*addon.Decision) {}, false},
		"a patch":                   {func(d *addon.Decision) { d.Actions = d.Recent }, true},
		"a patch that failed":       {func(d *addon.Decision) { d.Err = "patching RayCluster: timeout" }, true},
		"a head that is silent":     {func(d *addon.Decision) { d.RayErr = "deadline exceeded" }, true},
		"a head that nobody called": {func(d *addon.Decision) { d.RayErr, d.Mode = "mode is off", nodepool.Off }, false},
	} {
		d := decided()
		d.RayErr = ""
		c.change(d)
		if got := telemetry.Notable(d); got != c.want {
			t.Errorf("%s: told %v, want %v", name, got, c.want)
		}
	}
}
