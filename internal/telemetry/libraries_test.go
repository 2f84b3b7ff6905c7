package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"os"
	"testing"

	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// keepGlobals restores the loggers of libraries at the end of a test. gRPC cannot restore its previous logger, so its
// log is discarded.
func keepGlobals(t *testing.T) {
	before, flags := slog.Default(), log.Flags()
	t.Cleanup(func() {
		AdoptGRPC(slog.New(slog.DiscardHandler))
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
		"gRPC's":               {func() { grpclog.Errorf("frame too large: %d", 9) }, map[string]any{"logger": "grpc", "level": "ERROR", "msg": "frame too large: 9"}},
		"the standard library": {func() { log.Print("http: superfluous call") }, map[string]any{"logger": "log", "level": "INFO", "msg": "http: superfluous call"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			logger, err := NewLogger(&out, "json", "info")
			if err != nil {
				t.Fatal(err)
			}
			AdoptGRPC(logger)
			AdoptLibraries(logger)
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

func TestDetailsOfLibrariesAreNotLogged(t *testing.T) {
	keepGlobals(t)
	var out bytes.Buffer
	logger, err := NewLogger(&out, "json", "info")
	if err != nil {
		t.Fatal(err)
	}
	AdoptGRPC(logger)
	AdoptLibraries(logger)
	klog.V(2).Info("a detail of client-go")
	grpclog.Warning("a connection failed")
	grpclog.Info("a channel was made")
	if out.Len() > 0 {
		t.Errorf("got %s, want nothing", out.String())
	}
}
