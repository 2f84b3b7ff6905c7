package telemetry

import (
	"bytes"
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
	log.With("cluster", "ml/llm").InfoContext(ctx, "patched")
	span.End(Told{At: noon})
	told := spans.GetSpans()[len(spans.GetSpans())-1].SpanContext
	for _, want := range []string{told.TraceID().String(), told.SpanID().String(), "ml/llm"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q lacks %s", out.String(), want)
		}
	}
}

func TestRecordsOfASpanThatIsNotSampledPointNowhere(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, "json", "info")
	if err != nil {
		t.Fatal(err)
	}
	ctx, _ := tracerTo(sdktrace.WithSampler(sdktrace.NeverSample())).Begin(t.Context(), "ml", "llm", noon)
	log.InfoContext(ctx, "patched")
	if strings.Contains(out.String(), "trace_id") {
		t.Errorf("%q names a trace that is not exported", out.String())
	}
}
