package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc/grpclog"
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

// keepGlobals restores the loggers of libraries at the end of a test. gRPC's is that of TestMain all the time.
func keepGlobals(t *testing.T) {
	before, flags := slog.Default(), log.Flags()
	t.Cleanup(func() {
		grpcLog.to.Store(nil)
		klog.ClearLogger()
		slog.SetDefault(before)
		log.SetOutput(os.Stderr)
		log.SetFlags(flags)
	})
}

// grpcLog is where gRPC logs in this package's tests: to the logger of the test, if it has set one.
var grpcLog grpcHandler

// grpcHandler passes records on to the logger that to holds at that time.
type grpcHandler struct {
	to    atomic.Pointer[slog.Logger]
	attrs []slog.Attr
	root  *grpcHandler
}

func (g *grpcHandler) Enabled(context.Context, slog.Level) bool { return true }
func (g *grpcHandler) WithGroup(string) slog.Handler            { return g }
func (g *grpcHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &grpcHandler{attrs: attrs, root: g}
}

func (g *grpcHandler) Handle(ctx context.Context, record slog.Record) error {
	if to := g.root.to.Load(); to != nil && to.Enabled(ctx, record.Level) {
		return to.Handler().WithAttrs(g.attrs).Handle(ctx, record)
	}
	return nil
}

// TestMain adopts gRPC's logger once, as the program does: it has no lock, and connections of earlier tests may still
// close and log that.
func TestMain(m *testing.M) {
	AdoptGRPC(slog.New(&grpcLog))
	os.Exit(m.Run())
}

func TestLinesOfLibrariesAreLinesOfTheLog(t *testing.T) {
	keepGlobals(t)
	for name, c := range map[string]struct {
		say  func()
		want map[string]any
	}{
		"client-go's":          {func() { klog.ErrorS(errors.New("refused"), "watching") }, map[string]any{"logger": "klog", "level": "ERROR", "msg": "watching", "err": "refused"}},
		"client-go's old way":  {func() { klog.Warningf("throttled for %d s", 3) }, map[string]any{"logger": "klog", "level": "INFO", "msg": "throttled for 3 s"}},
		"gRPC's":               {func() { grpclog.Errorf("frame too large: %d", 9) }, map[string]any{"logger": "grpc", "level": "ERROR", "msg": "frame too large: 9"}},
		"the standard library": {func() { log.Print("http: superfluous call") }, map[string]any{"logger": "log", "level": "INFO", "msg": "http: superfluous call"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logger, err := NewLogger(&out, "json", "info")
			if err != nil {
				t.Fatal(err)
			}
			grpcLog.to.Store(logger)
			AdoptLibraries(logger)
			klog.V(2).Info("a detail of client-go")
			grpclog.Warning("a connection failed")
			grpclog.Info("a channel was made")
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
