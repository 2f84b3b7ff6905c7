package telemetry

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestASpanHasAChildForEachPartOfTheCycle(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := tracerTo(sdktrace.WithSyncer(spans))
	_, span := tracer.Begin(t.Context(), "ml", "llm", noon)
	span.End(CycleReport{At: noon, Export: true, Observed: time.Second, Waited: 4 * time.Second, Planned: 2 * time.Second, Applied: 3 * time.Second,
		Mode: "managed", Actions: []string{"patch-error"}, Reasons: []string{"launch"}, Err: "patching RayCluster: conflict"})
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
		"heliostat.actions": `["patch-error"]`, "heliostat.reasons": `["launch"]`}, attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if root.Status.Code != codes.Error || root.Status.Description != "patching RayCluster: conflict" {
		t.Errorf("status = %+v", root.Status)
	}
}

func TestASpanThatIsNotReportedIsNotExported(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := tracerTo(sdktrace.WithSyncer(spans))
	tracer.Begin(t.Context(), "ml", "llm", noon)
	if err := tracer.shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := spans.GetSpans(); len(got) != 0 {
		t.Errorf("%d spans, want none", len(got))
	}
}
