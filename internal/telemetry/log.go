package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// NewLogger returns a logger that writes to w in the given format, text or json, from the given level on: debug, info,
// warn or error.
func NewLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var threshold slog.Level
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("reading log level %q: want debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: threshold}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, options)), nil
	}
	return nil, fmt.Errorf("reading log format %q: want text or json", format)
}
