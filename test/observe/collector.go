package observe

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

// collector is the OpenTelemetry collector's own OTLP receiver. It stores everything that it receives.
type collector struct {
	traces    consumertest.TracesSink
	metrics   consumertest.MetricsSink
	receivers []component.Component
}

// startCollector listens for traces and metrics at both addresses, one for HTTP and one for gRPC.
func startCollector(ctx context.Context, http, grpc string) (*collector, error) {
	c := &collector{}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	config.Protocols.HTTP.GetOrInsertDefault().ServerConfig.NetAddr.Endpoint = http
	config.Protocols.GRPC.GetOrInsertDefault().NetAddr.Endpoint = grpc
	settings := receivertest.NewNopSettings(factory.Type())
	traces, err := factory.CreateTraces(ctx, settings, config, &c.traces)
	if err != nil {
		return nil, fmt.Errorf("making the receiver of traces: %w", err)
	}
	metrics, err := factory.CreateMetrics(ctx, settings, config, &c.metrics)
	if err != nil {
		return nil, fmt.Errorf("making the receiver of metrics: %w", err)
	}
	for _, receiver := range []component.Component{traces, metrics} {
		if err := receiver.Start(ctx, componenttest.NewNopHost()); err != nil {
			return nil, fmt.Errorf("starting the collector: %w", err)
		}
		c.receivers = append(c.receivers, receiver)
	}
	return c, nil
}

func (c *collector) stop(ctx context.Context) {
	for _, receiver := range c.receivers {
		receiver.Shutdown(ctx)
	}
}

// names returns the names of the metrics that the collector has received.
func (c *collector) names() map[string]bool {
	names := map[string]bool{}
	for _, batch := range c.metrics.AllMetrics() {
		for _, resource := range batch.ResourceMetrics().All() {
			for _, scope := range resource.ScopeMetrics().All() {
				for _, metric := range scope.Metrics().All() {
					names[metric.Name()] = true
				}
			}
		}
	}
	return names
}

// span is the part of a span that tests check.
type span struct {
	trace, id, parent, name string
	from, to                time.Time
	attributes              map[string]any
	// launched are the groups of its events scale-up.
	launched []string
	failed   bool
}

// spans returns all spans that the collector has received.
func (c *collector) spans() (all []span) {
	for _, batch := range c.traces.AllTraces() {
		for _, resource := range batch.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, s := range scope.Spans().All() {
					all = append(all, spanOf(s))
				}
			}
		}
	}
	return all
}

func spanOf(s ptrace.Span) span {
	var launched []string
	for _, event := range s.Events().All() {
		if event.Name() == "scale-up" {
			launched = append(launched, fmt.Sprint(event.Attributes().AsRaw()["ray.group"]))
		}
	}
	return span{
		launched: launched,
		trace:    s.TraceID().String(), id: s.SpanID().String(), parent: s.ParentSpanID().String(), name: s.Name(),
		from: moment(s.StartTimestamp()), to: moment(s.EndTimestamp()),
		attributes: s.Attributes().AsRaw(), failed: s.Status().Code() == ptrace.StatusCodeError,
	}
}

func moment(t pcommon.Timestamp) time.Time { return t.AsTime() }
