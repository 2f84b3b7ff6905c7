package telemetry

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
)

// ids name a span before it is known whether there will be one: what a cycle logs carries them from its beginning.
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

type chosen struct{}

// choosing makes the next span that is started with the context have these ids.
func choosing(ctx context.Context, i ids) context.Context { return context.WithValue(ctx, chosen{}, i) }

// idSource gives a span the ids that were chosen for it, and random ones where none were.
type idSource struct{}

// NewIDs names the first span of a trace.
func (idSource) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	i, known := ctx.Value(chosen{}).(ids)
	if !known {
		i = newIDs()
	}
	return i.trace, i.span
}

// NewSpanID names a further one.
func (idSource) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if i, known := ctx.Value(chosen{}).(ids); known {
		return i.span
	}
	return newSpanID()
}
