// Package telemetry reports what Heliostat does: it provides the logger, the instruments for Prometheus and OTLP, and
// one trace for each cycle that did something. It measures what a decision of the loop shows, and decides nothing. It
// must not delay a cycle: it drops data that a collector does not accept in time.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	"golang.org/x/time/rate"
)

// scope is the instrumentation scope.
const scope = "heliostat.dev/heliostat"

// Config is the configuration of telemetry.
type Config struct {
	// Registerer registers the instruments with Prometheus; nil for none.
	Registerer prometheus.Registerer
	// Getenv reads the OTEL_* environment variables. OTLP is off if Getenv is nil or no endpoint is set.
	Getenv func(string) string
	// Version is the version of the program.
	Version string
	// Log gets what goes wrong with exports, at most one line a minute.
	Log *slog.Logger
	// Leads reports whether this process currently makes decisions and can write; nil if it never does.
	Leads func() bool
	// Division returns what this process knows of the shards; nil, or false, without shards.
	Division func() (Division, bool)
}

// Telemetry is running telemetry. Its instruments are in Metrics, and its spans in Tracer.
type Telemetry struct {
	*Metrics
	*Tracer
	shutdown []func(context.Context) error
}

// Start starts telemetry with this configuration. It does not connect to a collector before the first export, so a
// collector that does not respond causes no delay.
func Start(ctx context.Context, config Config) (*Telemetry, error) {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Getenv == nil {
		config.Getenv = func(string) string { return "" }
	}
	resources, err := resource.New(
		ctx,
		resource.WithAttributes(attribute.String("service.name", "heliostat"),
			attribute.String("service.version", config.Version)),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(),
	)
	if err != nil {
		return nil, fmt.Errorf("reading OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	options := []sdkmetric.Option{
		sdkmetric.WithResource(resources),
		// Most cycles have no exported span, so most exemplars would refer to nothing.
		sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter),
		sdkmetric.WithCardinalityLimit(maxSeries),
	}
	readers, err := metricReaders(ctx, config)
	if err != nil {
		return nil, err
	}
	for _, reader := range readers {
		options = append(options, sdkmetric.WithReader(reader))
	}
	provider := sdkmetric.NewMeterProvider(options...)
	t := &Telemetry{shutdown: []func(context.Context) error{provider.Shutdown}}
	if t.Metrics, err = newMetrics(provider.Meter(scope), config); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	if t.Tracer, err = newTracer(ctx, config.Getenv, resources); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	t.shutdown = append(t.shutdown, t.Tracer.shutdown)
	// The SDK reports each batch that a collector does not accept here.
	sometimes := rate.Sometimes{Interval: time.Minute}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		sometimes.Do(func() { config.Log.Warn("telemetry is not exported", "err", err) })
	}))
	return t, nil
}

// Shutdown exports the remaining data until ctx ends. The signals shut down in parallel: each can have its own
// collector, and one that does not respond must not use up the time of the others.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	errs := make([]error, len(t.shutdown))
	var ending sync.WaitGroup
	for i, end := range t.shutdown {
		ending.Go(func() { errs[i] = end(ctx) })
	}
	ending.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("shutting down telemetry: %w", err)
	}
	return nil
}

// metricReaders returns the reader for Prometheus, and the reader for OTLP if the environment sets a collector.
func metricReaders(ctx context.Context, config Config) ([]sdkmetric.Reader, error) {
	var readers []sdkmetric.Reader
	if config.Registerer != nil {
		reader, err := otelprometheus.New(
			otelprometheus.WithRegisterer(config.Registerer),
			otelprometheus.WithoutScopeInfo(),
			otelprometheus.WithoutTargetInfo(),
			// The names already have the suffixes of Prometheus.
			otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithoutSuffixes),
		)
		if err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
		readers = append(readers, reader)
	}
	exporter, err := metricExporter(ctx, config.Getenv)
	if err != nil {
		return nil, err
	}
	if exporter != nil {
		readers = append(readers, sdkmetric.NewPeriodicReader(exporter))
	}
	return readers, nil
}
