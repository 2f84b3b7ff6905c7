package telemetry

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func TestLoggerFormats(t *testing.T) {
	for format, want := range map[string]string{"text": "reason=idle", "json": `"reason":"idle"`} {
		var out bytes.Buffer
		log, err := NewLogger(&out, format, "warn")
		if err != nil {
			t.Fatal(err)
		}
		log.Info("hidden")
		log.Warn("shown", "reason", "idle")
		if got := out.String(); !strings.Contains(got, want) || strings.Contains(got, "hidden") || strings.Contains(got, "trace_id") {
			t.Errorf("%s: %q", format, got)
		}
	}
	for _, bad := range [][2]string{{"xml", "info"}, {"text", "loud"}} {
		if _, err := NewLogger(&bytes.Buffer{}, bad[0], bad[1]); err == nil {
			t.Errorf("format %q and level %q: want an error", bad[0], bad[1])
		}
	}
}

func TestRecordsOfASpanCarryItsIDs(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, "json", "info")
	if err != nil {
		t.Fatal(err)
	}
	spans := tracetest.NewInMemoryExporter()
	ctx, span := tracerTo(sdktrace.WithSyncer(spans)).Begin(t.Context(), "ml", "llm", noon)
	log.InfoContext(ctx, "patched")
	span.End(CycleReport{At: noon, Export: true})
	report := spans.GetSpans()[len(spans.GetSpans())-1].SpanContext
	for _, want := range []string{report.TraceID().String(), report.SpanID().String(), "ml/llm"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %s", out.String(), want)
		}
	}
}

func TestEveryRecordOfACycleNamesItsTraceAndItsClusterOnce(t *testing.T) {
	silent, err := newTracer(t.Context(), Config{Getenv: func(string) string { return "" }}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tracer := range map[string]*Tracer{
		"without a collector": silent,
		"not sampled":         tracerTo(sdktrace.WithSampler(sdktrace.NeverSample())),
	} {
		var out bytes.Buffer
		log, err := NewLogger(&out, "json", "info")
		if err != nil {
			t.Fatal(err)
		}
		ctx, _ := tracer.Begin(t.Context(), "ml", "llm", noon)
		log.InfoContext(ctx, "one")
		log.InfoContext(ctx, "two", "cluster", "ml/llm")
		log.With("cluster", "ml/llm").WithGroup("g").InfoContext(ctx, "three")
		traces := map[string]bool{}
		for line := range strings.Lines(out.String()) {
			var record struct {
				Cluster string
				TraceID string `json:"trace_id"`
				G       struct {
					TraceID string `json:"trace_id"`
				}
			}
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatal(err)
			}
			traces[record.TraceID+record.G.TraceID] = true
			if record.Cluster != "ml/llm" || strings.Count(line, `"cluster"`) != 1 {
				t.Errorf("%s: %s does not name its cluster once", name, line)
			}
		}
		if len(traces) != 1 || traces[""] {
			t.Errorf("%s: records name the traces %v, want one", name, traces)
		}
	}
}
