// Package telemetry reports what Heliostat does: the logger, the instruments for Prometheus and OTLP, and one trace
// for each scale-up. It knows plain values only; the caller decides what they mean. It must never delay a cycle: what
// a collector does not accept in time is dropped and counted.
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
)

// scope is the instrumentation scope.
const scope = "heliostat.dev/heliostat"

// Config is the configuration of telemetry.
type Config struct {
	// Registerer registers the instruments with Prometheus; nil for none.
	Registerer prometheus.Registerer
	// Getenv reads the environment's OTEL_* variables. If it is nil, or without an endpoint, OTLP is off.
	Getenv func(string) string
	// Version is the version of the program.
	Version string
	// Log writes locally. It gets one line when a collector stops answering, and one when it answers again;
	// Telemetry.Log extends it.
	Log    *slog.Logger
	Limits Limits
	// Leads reports whether this process decides now and may write; nil if it never does.
	Leads func() bool
	// RequestMemory returns the memory use of ResourceRequests; nil if there are none.
	RequestMemory func() RequestMemory
}

// Telemetry is running telemetry. Its instruments and spans are in Metrics and Tracer.
type Telemetry struct {
	*Metrics
	*Tracer
	// Log writes what Config.Log writes, and exports the same records if the environment names a collector.
	Log      *slog.Logger
	shutdown []func(context.Context) error
}

// Start starts what config asks for. It does not connect to a collector before the first export, so a dead one delays
// nothing.
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
	health := newHealth(config.Log)
	options := []sdkmetric.Option{
		sdkmetric.WithResource(resources),
		sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter),
		sdkmetric.WithView(plain),
	}
	readers, err := metricReaders(ctx, config, health)
	if err != nil {
		return nil, err
	}
	for _, reader := range readers {
		options = append(options, sdkmetric.WithReader(reader))
	}
	provider := sdkmetric.NewMeterProvider(options...)
	t := &Telemetry{shutdown: []func(context.Context) error{provider.Shutdown}}
	if t.Metrics, err = newMetrics(provider.Meter(scope), config.Limits, config.Leads,
		config.RequestMemory); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	health.count(t.Metrics)
	if t.Tracer, err = newTracer(ctx, config, resources, health); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	t.shutdown = append(t.shutdown, t.Tracer.shutdown)
	if err := t.exportLogs(ctx, config, resources, health); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	// Errors of the SDK itself have no other way out; without a handler it would print them.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(health.complaint))
	return t, nil
}

// Shutdown exports what is left, until ctx ends. The signals end in parallel: each may have a collector of its own,
// and one that does not answer must not use up the time of the others.
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

// plain drops exemplars: most cycles have no exported span, so an exemplar would mostly refer to nothing, and the
// memory that the SDK reserves for them is a third of the cost of a collection.
var plain = sdkmetric.NewView(sdkmetric.Instrument{Name: "*"}, sdkmetric.Stream{
	ExemplarReservoirProviderSelector: func(sdkmetric.Aggregation) exemplar.ReservoirProvider {
		return func(attribute.Set) exemplar.Reservoir { return noExemplars{} }
	},
})

type noExemplars struct{}

func (noExemplars) Offer(context.Context, time.Time, exemplar.Value, []attribute.KeyValue) {}
func (noExemplars) Collect(held *[]exemplar.Exemplar)                                      { *held = (*held)[:0] }

// metricReaders returns Prometheus's reader, and OTLP's if the environment names a collector.
func metricReaders(ctx context.Context, config Config, health *health) ([]sdkmetric.Reader, error) {
	var readers []sdkmetric.Reader
	if config.Registerer != nil {
		reader, err := otelprometheus.New(
			otelprometheus.WithRegisterer(config.Registerer),
			otelprometheus.WithoutScopeInfo(),
			otelprometheus.WithoutTargetInfo(),
			// The names already have the suffixes that Prometheus wants.
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
		readers = append(readers, sdkmetric.NewPeriodicReader(watchedMetrics{exporter, health}))
	}
	return readers, nil
}
