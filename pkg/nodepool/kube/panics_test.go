package kube

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// inCycle is the key of a context that belongs to a cycle.
type inCycle struct{}

// contextual writes "in cycle" for records that are written with the context of one.
type contextual struct {
	slog.Handler
	out *bytes.Buffer
}

func (c contextual) Handle(ctx context.Context, record slog.Record) error {
	if ctx.Value(inCycle{}) != nil {
		c.out.WriteString("in cycle ")
	}
	return c.Handler.Handle(ctx, record)
}

func TestAPanicIsLoggedInTheContextOfItsCycle(t *testing.T) {
	for want, cause := range map[string]any{
		"in cycle ": Panic{Context: context.WithValue(t.Context(), inCycle{}, true), Cause: "index out of range"},
		"":          "index out of range",
	} {
		var out bytes.Buffer
		p := newPanics(slog.New(contextual{slog.NewTextHandler(&out, nil), &out}))
		p.record(llm, cause)
		cluster := nodepool.Cluster{Key: llm}
		p.addTo(&cluster)
		if line := out.String(); !strings.HasPrefix(line, want+"time=") || !strings.Contains(line, `cause="index out of range"`) {
			t.Errorf("logged %q, want it to begin with %q and to name the cause", line, want)
		}
		if len(cluster.Findings) != 1 || cluster.Findings[0].Seen != "index out of range" {
			t.Errorf("findings %+v, want one that names the cause", cluster.Findings)
		}
	}
}
