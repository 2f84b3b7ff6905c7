// Package telemetry reports what Heliostat does: the logger, the instruments for Prometheus and OTLP, and one span
// for each cycle that changed something or failed. It knows plain values only; what they mean is decided where they are
// measured. It never holds a cycle up: what a collector does not take in time is dropped and counted.
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

// scope names who measures.
const scope = "heliostat.dev/heliostat"

// Config is what telemetry is told of the process.
type Config struct {
	// Registerer takes the instruments in for Prometheus; nil for none.
	Registerer prometheus.Registerer
	// Getenv reads the environment's OTEL_* variables. OTLP is off without an endpoint, and when nil.
	Getenv func(string) string
	// Version is the program's.
	Version string
	// Log writes locally. It gets one line when a collector does not answer, and one when it does again; Telemetry.Log
	// extends it.
	Log    *slog.Logger
	Limits Limits
	// Leads reports whether this process decides now, and may write; nil for one that never does.
	Leads func() bool
	// RequestMemory reports what requests of owners take in memory; nil where there are none.
	RequestMemory func() RequestMemory
}

// Telemetry is a running telemetry. Its instruments and spans are in Metrics and Tracer.
type Telemetry struct {
	*Metrics
	*Tracer
	// Log writes what Config.Log writes, and exports the same records where the environment names a collector.
	Log      *slog.Logger
	shutdown []func(context.Context) error
}

// Start makes what config asks for. No collector is called before the first export, so one that is dead delays nothing.
func Start(ctx context.Context, config Config) (*Telemetry, error) {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Getenv == nil {
		config.Getenv = func(string) string { return "" }
	}
	resources, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "heliostat"), attribute.String("service.version", config.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("reading OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	health := newHealth(config.Log)
	options := []sdkmetric.Option{sdkmetric.WithResource(resources), sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter), sdkmetric.WithView(plain)}
	readers, err := metricReaders(ctx, config, health)
	if err != nil {
		return nil, err
	}
	for _, reader := range readers {
		options = append(options, sdkmetric.WithReader(reader))
	}
	provider := sdkmetric.NewMeterProvider(options...)
	t := &Telemetry{shutdown: []func(context.Context) error{provider.Shutdown}}
	if t.Metrics, err = newMetrics(provider.Meter(scope), config.Limits, config.Leads, config.RequestMemory); err != nil {
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
	// What the SDK itself complains about has no other way out, and would be printed line by line.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(health.complaint))
	return t, nil
}

// Shutdown exports what is left, for as long as ctx lasts. The signals end side by side: each may have a collector of
// its own, and one that does not answer must not use up the time of the others.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	errs := make([]error, len(t.shutdown))
	var ending sync.WaitGroup
	for i, end := range t.shutdown {
		ending.Go(func() { errs[i] = end(ctx) })
	}
	ending.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("ending telemetry: %w", err)
	}
	return nil
}

// plain keeps no exemplars: the spans of most cycles are thrown away, so an example would mostly point nowhere, and
// the room that the SDK sets aside for them is a third of what a collection costs.
var plain = sdkmetric.NewView(sdkmetric.Instrument{Name: "*"}, sdkmetric.Stream{
	ExemplarReservoirProviderSelector: func(sdkmetric.Aggregation) exemplar.ReservoirProvider {
		return func(attribute.Set) exemplar.Reservoir { return noExemplars{} }
	},
})

type noExemplars struct{}

func (noExemplars) Offer(context.Context, time.Time, exemplar.Value, []attribute.KeyValue) {}
func (noExemplars) Collect(held *[]exemplar.Exemplar)                                      { *held = (*held)[:0] }

// metricReaders are Prometheus's, and OTLP's where the environment names a collector.
func metricReaders(ctx context.Context, config Config, health *health) ([]sdkmetric.Reader, error) {
	var readers []sdkmetric.Reader
	if config.Registerer != nil {
		reader, err := otelprometheus.New(otelprometheus.WithRegisterer(config.Registerer), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo(),
			// The names stand as they are, with the suffixes that Prometheus wants.
			otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithoutSuffixes))
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
