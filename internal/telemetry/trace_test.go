package telemetry

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"heliostat.dev/heliostat/internal/addon"
)

func TestASpanHasAChildForEachPartOfTheCycle(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := tracerTo(sdktrace.WithSyncer(spans))
	_, span := tracer.Begin(t.Context(), "ml", "llm")
	span.End(CycleReport{At: noon, Observed: time.Second, Waited: 4 * time.Second, Planned: 2 * time.Second, Applied: 3 * time.Second,
		Mode: "managed", Actions: []addon.Action{{At: noon, Kind: addon.ActionDrain, Result: addon.ResultOK, Group: "gpu", Pods: []string{"gpu-1"}, Message: "XID 79 on GPU-3 of node n7"}, {At: noon, Kind: "patch", Result: "error"}}, Reasons: []string{"launch"}, Err: "patching RayCluster: conflict"})
	type part struct {
		Name       string
		From, Took time.Duration
	}
	var got []part
	all := spans.GetSpans()
	root := all[len(all)-1]
	for _, s := range all {
		got = append(got, part{s.Name, s.StartTime.Sub(noon), s.EndTime.Sub(s.StartTime)})
		if s.Name != "cycle" && s.Parent.SpanID() != root.SpanContext.SpanID() {
			t.Errorf("%s is no child of the cycle", s.Name)
		}
	}
	want := []part{{"observe", 0, time.Second}, {"wait", time.Second, 4 * time.Second}, {"plan", 5 * time.Second, 2 * time.Second}, {"apply", 7 * time.Second, 3 * time.Second}, {"cycle", 0, 10 * time.Second}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	attributes := map[string]string{}
	for _, a := range root.Attributes {
		attributes[string(a.Key)] = a.Value.String()
	}
	if diff := cmp.Diff(map[string]string{"k8s.namespace.name": "ml", "ray.cluster": "llm", "heliostat.mode": "managed",
		"heliostat.actions": `["drain-ok","patch-error"]`, "heliostat.reasons": `["launch"]`}, attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	drain := root.Events[0]
	if text := fmt.Sprint(drain.Name, drain.Attributes); len(root.Events) != 2 || !strings.Contains(text, "XID 79 on GPU-3 of node n7") || !strings.Contains(text, "gpu-1") {
		t.Errorf("events = %+v, want the drain with its cause, and the patch", root.Events)
	}
	if root.Status.Code != codes.Error || root.Status.Description != "patching RayCluster: conflict" {
		t.Errorf("status = %+v", root.Status)
	}
}

func TestASpanThatIsNotReportedIsNotExported(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := tracerTo(sdktrace.WithSyncer(spans))
	tracer.Begin(t.Context(), "ml", "llm")
	if err := tracer.shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := spans.GetSpans(); len(got) != 0 {
		t.Errorf("%d spans, want none", len(got))
	}
}

// treeOf formats the spans of a trace as a tree, with their seconds after noon.
func treeOf(all tracetest.SpanStubs) string {
	var out strings.Builder
	slices.SortStableFunc(all, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	var write func(parent, indent string)
	write = func(parent, indent string) {
		for _, s := range all {
			if s.Parent.SpanID().String() != parent || s.Name == "observe" || s.Name == "plan" || s.Name == "apply" {
				continue
			}
			fmt.Fprintf(&out, "%s%s %v-%v", indent, s.Name, s.StartTime.Sub(noon).Seconds(), s.EndTime.Sub(noon).Seconds())
			for _, a := range s.Attributes {
				if a.Key == "k8s.pod.name" {
					fmt.Fprintf(&out, " %s", a.Value.String())
				}
			}
			out.WriteByte('\n')
			write(s.SpanContext.SpanID().String(), indent+"  ")
		}
	}
	write("0000000000000000", "")
	return out.String()
}

// tracedMetrics returns metrics whose pods become part of the traces of tracer.
func tracedMetrics(t *testing.T) (told *Telemetry, spans *tracetest.InMemoryExporter) {
	t.Helper()
	told, err := Start(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	spans = tracetest.NewInMemoryExporter()
	told.Tracer = tracerTo(sdktrace.WithSyncer(spans))
	told.Metrics.arrived = told.Tracer.arrived
	return told, spans
}

// patches observes a cycle that grows the group gpu by some pods, which it has wanted for a second, and exports its span.
func patches(t *testing.T, told *Telemetry, seconds, pods int) {
	t.Helper()
	c := at(seconds)
	c.Namespace, c.Cluster, c.SeenToPatched = "ml", "llm", time.Second
	c.Actions = []Action{{Kind: "patch", Result: "ok", At: c.At, Group: "gpu", Grown: "gpu", Pods: pods}}
	told.Observe(c)
	_, span := told.Begin(t.Context(), "ml", "llm")
	span.End(CycleReport{Cycle: c, At: c.At})
}

func TestPodsArePartOfTheTraceOfTheCycleThatLaunchedThem(t *testing.T) {
	told, spans := tracedMetrics(t)
	observe := func(seconds int, m func(string) (time.Time, time.Time), pods ...Pod) {
		c := with(at(seconds, pods...), m)
		c.Namespace, c.Cluster = "ml", "llm"
		told.Observe(c)
	}
	coming, alive := Pod{Name: "a", Group: "gpu"}, Pod{Name: "a", Group: "gpu", Alive: true}
	patches(t, told, 2, 2)
	observe(3, moments(2, 0), coming, Pod{Name: "lost", Group: "gpu"})
	observe(5, moments(2, 4), coming)
	observe(8, moments(2, 4), alive)
	patches(t, told, 20, 1) // pods of this cycle are in its own trace
	observe(21, moments(20, 0), alive, Pod{Name: "b", Group: "gpu"})
	observe(30, moments(20, 22), alive, Pod{Name: "b", Group: "gpu", Alive: true})
	want := `cycle 2-2
  pod 2-8 a
    patched_to_scheduled 2-4
    scheduled_to_alive 4-8
cycle 20-20
  pod 20-30 b
    patched_to_scheduled 20-22
    scheduled_to_alive 22-30
`
	got := regexp.MustCompile(`(?m)^  seen_to_patched .*\n`).ReplaceAllString(treeOf(spans.GetSpans()), "")
	if diff := cmp.Diff(want, got); diff != "" || strings.Count(treeOf(spans.GetSpans()), "seen_to_patched") != 2 {
		t.Errorf("traces (-want +got):\n%s", diff)
	}
	told.Forget("ml", "llm")
	if len(told.growths) != 0 {
		t.Error("a RayCluster that is gone is remembered")
	}
}

func TestAThousandPodsHaveABoundedNumberOfSpans(t *testing.T) {
	told, spans := tracedMetrics(t)
	patches(t, told, 1, 1000)
	for _, alive := range []bool{false, true} {
		var pods []Pod
		for i := range 1000 {
			pods = append(pods, Pod{Name: fmt.Sprint("pod-", i), Group: "gpu", Alive: alive})
		}
		c := with(at(3, pods...), moments(1, 2))
		c.Namespace, c.Cluster = "ml", "llm"
		told.Observe(c)
	}
	if got := len(spans.GetSpans()); got > queued || got < 3*mostPods {
		t.Errorf("%d spans, more than the queue to the collector holds, or none of pods", got)
	}
}
