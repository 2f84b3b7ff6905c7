package telemetry

import (
	"bytes"
	"io"
	"log/slog"

	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// loggerKey is the attribute that names the library that a line comes from.
const loggerKey = "logger"

// AdoptLibraries makes what libraries log through globals of their own lines of log too, in its format and from its
// level on: client-go (klog), and whoever writes to the package log of the standard library. The attribute logger says
// which. The globals are not guarded, so it is for the program alone, before anything else runs; a second call
// replaces the logger of the first.
func AdoptLibraries(log *slog.Logger) {
	klog.SetSlogLogger(log.With(loggerKey, "klog"))
	slog.SetDefault(log.With(loggerKey, "log")) // the package log writes there from here on
}

// AdoptGRPC does the same for gRPC, once and before the first connection. The exporters speak gRPC too, so the logger
// must not export: each failed export could otherwise log what the next one exports.
func AdoptGRPC(local *slog.Logger) {
	// What gRPC calls a warning is a connection that failed, which callers learn by the error of their call.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, grpcErrors{local.With(loggerKey, "grpc")}))
}

// grpcErrors takes the lines of gRPC's own log, `2026/11/22 10:00:00 ERROR: text`.
type grpcErrors struct{ log *slog.Logger }

// Write tells one line.
func (g grpcErrors) Write(line []byte) (int, error) {
	text := bytes.TrimSpace(line)
	if _, after, found := bytes.Cut(text, []byte(": ")); found {
		text = after
	}
	g.log.Error(string(text))
	return len(line), nil
}
