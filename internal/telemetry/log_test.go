package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"os"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/klog/v2"

	"heliostat.dev/heliostat/internal/addon"
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

// Log lines of a cycle carry the IDs of its span, also if the span is not exported.
func TestRecordsOfACycleCarryTheIDsOfItsSpan(t *testing.T) {
	silent, err := newTracer(t.Context(), func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	spans := tracetest.NewInMemoryExporter()
	for name, tracer := range map[string]*Tracer{"without a collector": silent, "exported": tracerTo(sdktrace.WithSyncer(spans))} {
		var out bytes.Buffer
		log, err := NewLogger(&out, "json", "info")
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := tracer.Begin(t.Context(), "ml", "llm")
		log.With("cluster", "ml/llm").InfoContext(ctx, "patched")
		end(&addon.Decision{At: noon})
		var record struct {
			Trace string `json:"trace_id"`
			Span  string `json:"span_id"`
		}
		if err := json.Unmarshal(out.Bytes(), &record); err != nil || record.Trace == "" || record.Span == "" {
			t.Fatalf("%s: %q, %v", name, out.String(), err)
		}
		if tracer != silent {
			own := spans.GetSpans()[len(spans.GetSpans())-1].SpanContext
			if record.Trace != own.TraceID().String() || record.Span != own.SpanID().String() {
				t.Errorf("%s: %q, want %v", name, out.String(), own)
			}
		}
	}
}

// keepGlobals restores the loggers of libraries at the end of a test.
func keepGlobals(t *testing.T) {
	before, flags := slog.Default(), log.Flags()
	t.Cleanup(func() {
		klog.ClearLogger()
		slog.SetDefault(before)
		log.SetOutput(os.Stderr)
		log.SetFlags(flags)
	})
}

func TestLinesOfLibrariesAreLinesOfTheLog(t *testing.T) {
	keepGlobals(t)
	for name, c := range map[string]struct {
		say  func()
		want map[string]any
	}{
		"client-go's":          {func() { klog.ErrorS(errors.New("refused"), "watching") }, map[string]any{"logger": "klog", "level": "ERROR", "msg": "watching", "err": "refused"}},
		"client-go's old way":  {func() { klog.Warningf("throttled for %d s", 3) }, map[string]any{"logger": "klog", "level": "INFO", "msg": "throttled for 3 s"}},
		"the standard library": {func() { log.Print("http: superfluous call") }, map[string]any{"logger": "log", "level": "INFO", "msg": "http: superfluous call"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logger, err := NewLogger(&out, "json", "info")
			if err != nil {
				t.Fatal(err)
			}
			AdoptLibraries(logger)
			klog.V(2).Info("a detail of client-go")
			c.say()
			got := map[string]any{}
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("%q is no line of JSON: %v", out.String(), err)
			}
			for key, want := range c.want {
				if got[key] != want {
					t.Errorf("%s is %v, want %v, in %s", key, got[key], want, out.String())
				}
			}
		})
	}
}
