package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The supported OTLP protocols, as in OTEL_EXPORTER_OTLP_PROTOCOL. HTTP is OpenTelemetry's default.
const (
	overGRPC = "grpc"
	overHTTP = "http/protobuf"
)

// exportOver returns the protocol for the export of a signal (TRACES or METRICS), or "" if it is not exported.
// The exporters read all other settings from the environment: endpoint, headers, certificates, timeouts.
func exportOver(signal string, getenv func(string) string) (string, error) {
	set := func(suffix string) string {
		return cmp.Or(getenv("OTEL_EXPORTER_OTLP_"+signal+"_"+suffix), getenv("OTEL_EXPORTER_OTLP_"+suffix))
	}
	exporter, protocol := cmp.Or(getenv("OTEL_"+signal+"_EXPORTER"), "otlp"), cmp.Or(set("PROTOCOL"), overHTTP)
	switch {
	case strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true"), set("ENDPOINT") == "", exporter == "none":
		return "", nil
	case exporter != "otlp":
		return "", fmt.Errorf("reading OTEL_%s_EXPORTER: %q is not known, want otlp or none", signal, exporter)
	case protocol != overGRPC && protocol != overHTTP:
		return "", fmt.Errorf("reading OTEL_EXPORTER_OTLP_PROTOCOL: %q is not supported, want %s or %s", protocol,
			overGRPC, overHTTP)
	}
	return protocol, nil
}

// metricExporter and spanExporter return nil if their signal is not exported.
func metricExporter(ctx context.Context, getenv func(string) string) (exporter sdkmetric.Exporter, err error) {
	protocol, err := exportOver("METRICS", getenv)
	switch protocol {
	case overGRPC:
		exporter, err = otlpmetricgrpc.New(ctx)
	case overHTTP:
		exporter, err = otlpmetrichttp.New(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("setting up the export of metrics: %w", err)
	}
	return exporter, nil
}

func spanExporter(ctx context.Context, getenv func(string) string) (exporter sdktrace.SpanExporter, err error) {
	protocol, err := exportOver("TRACES", getenv)
	switch protocol {
	case overGRPC:
		exporter, err = otlptracegrpc.New(ctx)
	case overHTTP:
		exporter, err = otlptracehttp.New(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("setting up the export of traces: %w", err)
	}
	return exporter, nil
}
