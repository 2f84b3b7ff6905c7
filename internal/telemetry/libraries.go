package telemetry

import (
	"bytes"
	"io"
	"log/slog"

	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// loggerKey is the attribute that names the library that a log line comes from.
const loggerKey = "logger"

// AdoptLibraries sends the log lines of libraries that log through globals to log, in its format and from its level
// on: client-go (klog), and users of the package log of the standard library. The attribute logger names the library.
// The globals are not guarded, so only the program calls it, before anything else runs; a second call replaces the
// logger of the first.
func AdoptLibraries(log *slog.Logger) {
	klog.SetSlogLogger(log.With(loggerKey, "klog"))
	slog.SetDefault(log.With(loggerKey, "log")) // the package log now writes there
}

// AdoptGRPC does the same for gRPC, once and before the first connection. The exporters use gRPC too, so the logger
// must not export: otherwise each failed export could log what the next one exports.
func AdoptGRPC(local *slog.Logger) {
	// gRPC's warnings are failed connections; callers get them as the error of their call.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, grpcErrors{local.With(loggerKey, "grpc")}))
}

// grpcErrors receives the lines of gRPC's own log, `2026/11/22 10:00:00 ERROR: text`.
type grpcErrors struct{ log *slog.Logger }

// Write logs one line.
func (g grpcErrors) Write(line []byte) (int, error) {
	text := bytes.TrimSpace(line)
	if _, after, found := bytes.Cut(text, []byte(": ")); found {
		text = after
	}
	g.log.Error(string(text))
	return len(line), nil
}
