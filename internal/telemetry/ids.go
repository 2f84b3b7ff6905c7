package telemetry

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
)

// ids identify a span before it is known whether the span will exist. The log lines of a cycle contain them from the
// start.
type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

func newIDs() ids { return ids{trace: newTraceID(), span: newSpanID()} }

func newTraceID() (id trace.TraceID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

type idsKey struct{}

// withIDs sets the IDs of the next span that starts with the context.
func withIDs(ctx context.Context, i ids) context.Context { return context.WithValue(ctx, idsKey{}, i) }

// idSource gives a span the IDs of withIDs, or random IDs.
type idSource struct{}

// NewIDs returns the IDs of the first span of a trace.
func (idSource) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	i, known := ctx.Value(idsKey{}).(ids)
	if !known {
		i = newIDs()
	}
	return i.trace, i.span
}

// NewSpanID returns the ID of any other span of a trace.
func (idSource) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if i, known := ctx.Value(idsKey{}).(ids); known {
		return i.span
	}
	return newSpanID()
}
