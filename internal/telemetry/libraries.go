package telemetry

import (
	"bytes"
	"io"
	"log/slog"

	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// loggerKey is the attribute that names the library that wrote a log line.
const loggerKey = "logger"

// AdoptLibraries makes libraries with global loggers write to log, with its format and its minimum level: client-go
// (klog), and users of the package log of the standard library. The attribute logger names the library. The globals
// have no lock, so only the program calls AdoptLibraries, before anything else runs. A second call replaces the logger
// of the first.
func AdoptLibraries(log *slog.Logger) {
	klog.SetSlogLogger(log.With(loggerKey, "klog"))
	slog.SetDefault(log.With(loggerKey, "log")) // the package log now writes to this logger
}

// AdoptGRPC does the same for gRPC. Call it once, before the first connection. The exporters use gRPC too, so the
// logger must not export; otherwise, each failed export could log the content of the next one.
func AdoptGRPC(local *slog.Logger) {
	// gRPC logs failed connections as warnings; callers get them as the error of their call.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, grpcErrors{local.With(loggerKey, "grpc")}))
}

// grpcErrors receives the lines of gRPC's own log, for example `2026/11/22 10:00:00 ERROR: text`.
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
