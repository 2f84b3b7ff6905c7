package telemetry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"heliostat.dev/heliostat/internal/addon"
)

// exported returns what a cycle with this decision exports: the parts, with their durations and the cycle last.
func exported(t *testing.T, d *addon.Decision) (parts []string, cycle tracetest.SpanStub) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	tracer := tracerTo(sdktrace.WithSyncer(spans))
	tracer.Begin(t.Context(), "ml", "llm") // a cycle at rest
	_, end := tracer.Begin(t.Context(), "ml", "llm")
	end(d)
	all := spans.GetSpans()
	cycle = all[len(all)-1]
	for _, s := range all[:len(all)-1] {
		parts = append(parts, fmt.Sprint(s.Name, " ", s.EndTime.Sub(s.StartTime)))
		if s.Parent.SpanID() != cycle.SpanContext.SpanID() || s.EndTime.After(cycle.EndTime) {
			t.Errorf("%+v is no child of the cycle", s)
		}
	}
	return parts, cycle
}

func TestASpanHasAChildForEachPartOfTheCycle(t *testing.T) {
	d := busy()
	d.At = time.Now().Add(time.Hour) // the cycle begins before its decision
	d.Took, d.Observed, d.Planned = 6*time.Second, time.Second, 2*time.Second
	d.Actions[1].Message, d.Err = "XID 79 on GPU-3 of node n7", "patching RayCluster: conflict"
	parts, cycle := exported(t, &d)
	if diff := cmp.Diff([]string{"observe 1s", "plan 2s", "apply 3s"}, parts); diff != "" || cycle.Name != "cycle" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	attributes := map[string]string{}
	for _, a := range cycle.Attributes {
		attributes[string(a.Key)] = a.Value.String()
	}
	want := map[string]string{"k8s.namespace.name": "ml", "ray.cluster": "llm", "heliostat.mode": "managed", "heliostat.reasons": `["idle","launch","none"]`,
		"heliostat.actions": `["patch-ok","drain-refused","patch-ok","patch-ok","report-ok"]`}
	if diff := cmp.Diff(want, attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	if text := fmt.Sprint(cycle.Events[1].Name, cycle.Events[1].Attributes); len(cycle.Events) != len(d.Actions) ||
		!strings.Contains(text, "drain") || !strings.Contains(text, "XID 79 on GPU-3 of node n7") || !strings.Contains(text, `["a"]`) {
		t.Errorf("events = %+v, want the drain with its cause, and the patches", cycle.Events)
	}
	if cycle.Status != (sdktrace.Status{Code: codes.Error, Description: d.Err}) {
		t.Errorf("status = %+v", cycle.Status)
	}
}

// A RayCluster that cannot be read has the decision of an earlier cycle.
func TestASpanOfACycleThatSawNothingHasNothingOfTheOneBefore(t *testing.T) {
	d := busy()
	d.ObserveFailed, d.Err = true, "observing: forbidden"
	parts, cycle := exported(t, &d)
	if len(parts) != 3 || parts[1] != "plan 0s" || parts[2] != "apply 0s" || len(cycle.Events) > 0 || time.Since(cycle.StartTime) > time.Minute {
		t.Errorf("parts %v of %+v", parts, cycle)
	}
	silent := busy()
	silent.RayErr = "the head does not answer"
	if _, cycle := exported(t, &silent); cycle.Status.Description != silent.RayErr {
		t.Errorf("status = %+v, want why Ray did not answer", cycle.Status)
	}
}
