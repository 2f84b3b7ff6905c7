package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The supported OTLP protocols, as in OTEL_EXPORTER_OTLP_PROTOCOL. HTTP is OpenTelemetry's default.
const (
	overGRPC = "grpc"
	overHTTP = "http/protobuf"
)

// exportOver returns the protocol for the export of a signal (TRACES, METRICS or LOGS), or "" if it is not exported.
// The exporters read all other settings from the environment: endpoint, headers, certificates, timeouts.
func exportOver(signal string, getenv func(string) string) (string, error) {
	set := func(suffix string) string {
		return cmp.Or(getenv("OTEL_EXPORTER_OTLP_"+signal+"_"+suffix), getenv("OTEL_EXPORTER_OTLP_"+suffix))
	}
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || set("ENDPOINT") == "" {
		return "", nil
	}
	switch exporter := getenv("OTEL_" + signal + "_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return "", nil
	default:
		return "", fmt.Errorf("reading OTEL_%s_EXPORTER: %q is not known, want otlp or none", signal, exporter)
	}
	switch protocol := cmp.Or(set("PROTOCOL"), overHTTP); protocol {
	case overGRPC, overHTTP:
		return protocol, nil
	default:
		return "", fmt.Errorf("reading OTEL_EXPORTER_OTLP_PROTOCOL: %q is not supported, want %s or %s", protocol,
			overGRPC, overHTTP)
	}
}

// metricExporter returns nil if metrics are not exported.
func metricExporter(ctx context.Context, getenv func(string) string) (sdkmetric.Exporter, error) {
	protocol, err := exportOver("METRICS", getenv)
	if protocol == "" {
		return nil, err
	}
	var exporter sdkmetric.Exporter
	if protocol == overGRPC {
		exporter, err = otlpmetricgrpc.New(ctx)
	} else {
		exporter, err = otlpmetrichttp.New(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("setting up the export of metrics: %w", err)
	}
	return exporter, nil
}

// spanExporter returns nil if spans are not exported.
func spanExporter(ctx context.Context, getenv func(string) string) (sdktrace.SpanExporter, error) {
	protocol, err := exportOver("TRACES", getenv)
	if protocol == "" {
		return nil, err
	}
	var exporter sdktrace.SpanExporter
	if protocol == overGRPC {
		exporter, err = otlptracegrpc.New(ctx)
	} else {
		exporter, err = otlptracehttp.New(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("setting up the export of traces: %w", err)
	}
	return exporter, nil
}

// logExporter returns nil if log records are not exported.
func logExporter(ctx context.Context, getenv func(string) string) (sdklog.Exporter, error) {
	protocol, err := exportOver("LOGS", getenv)
	if protocol == "" {
		return nil, err
	}
	var exporter sdklog.Exporter
	if protocol == overGRPC {
		exporter, err = otlploggrpc.New(ctx)
	} else {
		exporter, err = otlploghttp.New(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("setting up the export of logs: %w", err)
	}
	return exporter, nil
}
